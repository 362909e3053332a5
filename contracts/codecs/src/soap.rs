//! SOAP 1.1, document/literal wrapped, driven by a WSDL: envelopes to operations with arguments and results, and back.
//!
//! ```
//! use codecs::soap::{Envelope, Limits, wsdl};
//!
//! let text = include_str!("../schemas/chess.wsdl");
//! let chess = wsdl::parse("chess.wsdl", text, &mut |location| Err(format!("{location} is not to be had"))).unwrap();
//! let bytes = br#"<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>
//!     <MakeGame xmlns="http://www.bennedik.com/webservices/XfccBasic"><whiteUser>anna</whiteUser><blackUser>ben</blackUser></MakeGame>
//! </e:Body></e:Envelope>"#;
//! let envelope = Envelope::parse(bytes, &Limits::DEFAULT).unwrap();
//! let request = envelope.request(&chess, Some("MakeGame")).unwrap();
//! assert_eq!(request.operation.name, "MakeGame");
//! assert_eq!(request.arguments.at(1).and_then(|black| black.as_str()), Some("ben"));
//! ```
//!
//! # Where SOAP leaves a choice
//!
//! - **The body's element** says which operation it is. `SOAPAction` may be missing, and is spelled in several ways; that it says another is told.
//! - **A document type** is refused, as SOAP 1.1 has it (section 3), and with it every entity but XML's five.
//! - **Dates and times** are texts, whatever a field's name is.
//! - **Fields** are found by name in any order; that they are in another order than their type has them is not looked at.
//! - **`xsi:type`** is not looked at.

mod compose;
mod envelope;
mod types;
mod view;
pub mod wsdl;
mod xml;

pub use compose::{ComposeError, compose_envelope, compose_fault};
pub use envelope::{Envelope, Fault, Request, Response, SOAP_11, SoapError};
pub use types::{Builtin, Complex, ComplexId, Field, Message, Operation, Port, Service, Simple, SimpleId, Type, Wsdl};
pub use view::View;
pub use xml::{Limits, XmlError};
