//! The schemas of the services that quintain's mocks serve and its journeys call.

/// The part of Evernote's services that the case study calls.
pub const EVERNOTE_THRIFT: &str = include_str!("../schemas/evernote.thrift");
/// The WSDL of a correspondence chess service modeled on Xfcc.
pub const CHESS_WSDL: &str = include_str!("../schemas/chess.wsdl");

/// File name and text of each schema.
pub const ALL: [(&str, &str); 4] = [
    ("evernote.thrift", EVERNOTE_THRIFT),
    ("calculator.thrift", include_str!("../schemas/calculator.thrift")),
    ("chess.wsdl", CHESS_WSDL),
    ("airline.wsdl", include_str!("../schemas/airline.wsdl")),
];

/// The text of the schema with this file name, or `None` if there is none.
pub fn by_file_name(file: &str) -> Option<&'static str> {
    ALL.iter().find(|schema| schema.0 == file).map(|schema| schema.1)
}
