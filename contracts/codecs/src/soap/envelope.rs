//! SOAP 1.1 envelopes: what a request asks, what a response says. Source: <https://www.w3.org/TR/2000/NOTE-SOAP-20000508/>.

use super::types::{ComplexId, Message, Operation, Wsdl};
use super::view::View;
use super::xml::{Document, Limits, XmlError};

/// The namespace of SOAP 1.1.
pub const SOAP_11: &str = "http://schemas.xmlsoap.org/soap/envelope/";

const SOAP_12: &str = "http://www.w3.org/2003/05/soap-envelope";

/// Why bytes are no message of a service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SoapError {
    /// They are no XML, or go beyond a limit.
    #[error(transparent)]
    Xml(#[from] XmlError),
    /// The root is no envelope of SOAP 1.1.
    #[error("the root is `{name}`, not a SOAP 1.1 envelope")]
    NoEnvelope {
        /// Its name.
        name: String,
    },
    /// An envelope of SOAP 1.2.
    #[error("a SOAP 1.2 envelope; only SOAP 1.1 is supported")]
    Version12,
    /// There is no body, or more than one.
    #[error("{count} bodies in the envelope, expected one")]
    Bodies {
        /// How many.
        count: usize,
    },
    /// The body has nothing in it, or more than one element.
    #[error("{count} elements in the body, expected one")]
    Elements {
        /// How many.
        count: usize,
    },
    /// The WSDL has no operation with this element.
    #[error("no operation has element `{name}` in namespace `{namespace}`")]
    UnknownOperation {
        /// The element's name.
        name: String,
        /// Its namespace.
        namespace: String,
    },
    /// The response is another operation's.
    #[error("expected `{expected}` in the body, found `{found}`")]
    OtherElement {
        /// What is there.
        found: String,
        /// What the WSDL says.
        expected: String,
    },
}

/// An envelope of SOAP 1.1. It borrows what it was read from.
pub struct Envelope<'d> {
    document: Document<'d>,
    /// The element in the body.
    content: u32,
}

/// What a request asks.
#[derive(Clone, Copy)]
pub struct Request<'e> {
    /// The operation that has the body's element.
    pub operation: &'e Operation,
    /// What is in that element: the arguments by name and by place.
    pub arguments: View<'e>,
    /// `SOAPAction` names another operation, or none that is known. The body says what is done; servers that go by the header would do something else.
    pub is_action_other: bool,
}

/// What a response says.
pub enum Response<'e> {
    /// The operation was done.
    Returned {
        /// The element in the body with all that is in it.
        all: View<'e>,
        /// What the one element in it holds, as document/literal wrapped has it; `None` where it has none, or several.
        result: Option<View<'e>>,
    },
    /// It was not.
    Fault(Fault<'e>),
}

/// Why an operation was not done.
#[derive(Clone, Copy)]
pub struct Fault<'e> {
    /// `Client`, `Server` and so on, with a prefix before it.
    pub code: &'e str,
    /// Why, in words.
    pub string: &'e str,
    /// Who says so.
    pub actor: Option<&'e str>,
    /// What else is said, as elements whose types are not known.
    pub detail: Option<View<'e>>,
}

impl Fault<'_> {
    /// The code without its prefix.
    pub fn code_name(&self) -> &str {
        self.code.rsplit(':').next().unwrap_or(self.code).trim()
    }
}

impl<'d> Envelope<'d> {
    /// Reads a whole envelope.
    ///
    /// # Errors
    ///
    /// What is no XML, what is over a limit, a document type, and what is no envelope with one element in its body.
    pub fn parse(bytes: &'d [u8], limits: &Limits) -> Result<Envelope<'d>, SoapError> {
        let document = Document::parse(bytes, limits)?;
        if document.is(0, SOAP_12, "Envelope") {
            return Err(SoapError::Version12);
        }
        if !document.is(0, SOAP_11, "Envelope") {
            return Err(SoapError::NoEnvelope { name: document.element(0).name.to_owned() });
        }
        let bodies = document.children(0).filter(|child| document.is(*child, SOAP_11, "Body")).collect::<Vec<_>>();
        let [body] = bodies.as_slice() else { return Err(SoapError::Bodies { count: bodies.len() }) };
        let contents = document.children(*body).collect::<Vec<_>>();
        let [content] = contents.as_slice() else { return Err(SoapError::Elements { count: contents.len() }) };
        let content = *content;
        Ok(Envelope { document, content })
    }

    /// Namespace and name of the element in the body.
    pub fn content(&self) -> (&str, &str) {
        (self.document.namespace(self.content), self.document.element(self.content).name)
    }

    fn view<'e>(&'e self, wsdl: &'e Wsdl, content: ComplexId) -> View<'e> {
        View::of_complex(&self.document, self.content, wsdl, content)
    }

    /// What it asks, where it is a request; `action` is the value of `SOAPAction`, if there is one.
    ///
    /// # Errors
    ///
    /// An element that no operation has.
    pub fn request<'e>(&'e self, wsdl: &'e Wsdl, action: Option<&str>) -> Result<Request<'e>, SoapError> {
        let (namespace, name) = self.content();
        let Some(operation) = wsdl.operation_by_element(namespace, name) else {
            return Err(SoapError::UnknownOperation { name: name.to_owned(), namespace: namespace.to_owned() });
        };
        let said = action.map(|action| action.trim().trim_matches('"')).filter(|action| !action.is_empty());
        let named = said.map(|action| wsdl.operation_by_action(action).map(|operation| &operation.name));
        let is_action_other = named.is_some_and(|named| named != Some(&operation.name));
        Ok(Request { operation, arguments: self.view(wsdl, operation.input.content), is_action_other })
    }

    /// What it says, where it is the response to an operation.
    ///
    /// # Errors
    ///
    /// An element that is neither a fault nor the operation's.
    pub fn response<'e>(&'e self, wsdl: &'e Wsdl, operation: &Operation) -> Result<Response<'e>, SoapError> {
        let (namespace, name) = self.content();
        if (namespace, name) == (SOAP_11, "Fault") {
            return Ok(Response::Fault(self.fault(wsdl)));
        }
        let is = |output: &&Message| output.element == name && output.namespace == namespace;
        let Some(output) = operation.output.as_ref().filter(is) else {
            let expected = operation.output.as_ref().map_or("a fault or nothing", |output| &output.element);
            return Err(SoapError::OtherElement { found: name.to_owned(), expected: expected.to_owned() });
        };
        let all = self.view(wsdl, output.content);
        let result = match wsdl.complex(output.content).fields.as_slice() {
            [only] => all.get(&only.name),
            _ => None,
        };
        Ok(Response::Returned { all, result })
    }

    fn fault<'e>(&'e self, wsdl: &'e Wsdl) -> Fault<'e> {
        // SOAP 1.1 has no namespace on what is in a fault; some servers give it one.
        let child =
            |name: &str| self.document.children(self.content).find(|child| self.document.element(*child).name == name);
        let text = |name: &str| child(name).map(|child| self.document.element(child).text.trim());
        Fault {
            code: text("faultcode").unwrap_or_default(),
            string: text("faultstring").unwrap_or_default(),
            actor: text("faultactor"),
            detail: child("detail").map(|detail| View::of_any(&self.document, detail, wsdl)),
        }
    }
}
