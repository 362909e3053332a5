//! Reads and writes SOAP 1.1 envelopes (document/literal wrapped) as operations of a WSDL with arguments and results.
//! ```
//! use codecs::soap::{Envelope, Limits, wsdl};
//! let text = include_str!("../schemas/chess.wsdl");
//! let chess = wsdl::parse("chess.wsdl", text, &mut |location| Err(format!("{location} not found"))).unwrap();
//! let bytes = br#"<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>
//!     <MakeGame xmlns="http://www.bennedik.com/webservices/XfccBasic"><whiteUser>anna</whiteUser><blackUser>ben</blackUser></MakeGame>
//! </e:Body></e:Envelope>"#;
//! let envelope = Envelope::parse(bytes, &Limits::DEFAULT).unwrap();
//! let request = envelope.request(&chess, Some("MakeGame")).unwrap();
//! assert_eq!(request.operation.name, "MakeGame");
//! assert_eq!(request.arguments.at(1).and_then(|black| black.as_str()), Some("ben"));
//! ```
//! # Choices that SOAP leaves open
//! - **Operation:** the body's element selects it. `SOAPAction` may be missing; a different name in it is reported.
//! - **Document types** are rejected, as SOAP 1.1 requires (section 3). So are entities except XML's own.
//! - **Dates and times** are read as text.
//! - **Fields** are found by name; their order is not checked.
//! - **`xsi:type`** is ignored.

mod compose;
mod envelope;
mod resolved_wsdl;
mod value_view;
pub mod wsdl;
mod xml_tree;

pub use compose::{compose_envelope, compose_fault};
pub use envelope::{Envelope, Fault, Request, Response, SOAP_11};
pub use resolved_wsdl::{
    Builtin, Complex, ComplexId, Enumeration, EnumerationId, Field, Message, Operation, Service, Type, Wsdl,
};
pub use value_view::View;
pub use xml_tree::Limits;

pub use crate::mistake::DecodeError;
pub use crate::value::ComposeError;
