//! Schemas of the services that quintain's mocks serve and its journeys call.

/// The part of Evernote's services that the case study calls.
pub const EVERNOTE_THRIFT: &str = include_str!("../schemas/evernote.thrift");
/// Correspondence chess in the manner of Xfcc.
pub const CHESS_WSDL: &str = include_str!("../schemas/chess.wsdl");

/// All of them by the names of their files.
pub const ALL: [(&str, &str); 4] = [
    ("evernote.thrift", EVERNOTE_THRIFT),
    ("calculator.thrift", include_str!("../schemas/calculator.thrift")),
    ("chess.wsdl", CHESS_WSDL),
    ("airline.wsdl", include_str!("../schemas/airline.wsdl")),
];

/// The text of one by the name of its file.
pub fn by_file_name(file: &str) -> Option<&'static str> {
    ALL.iter().find(|schema| schema.0 == file).map(|schema| schema.1)
}
