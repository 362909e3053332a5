//! SOAP 1.1 envelopes, read as requests and responses. Source: <https://www.w3.org/TR/2000/NOTE-SOAP-20000508/>.

use super::resolved_wsdl::{Message, Operation, Type, Wsdl};
use super::value_view::View;
use super::xml_tree::{Document, Limits, Node};
use crate::mistake::DecodeError;

/// The namespace of SOAP 1.1.
pub const SOAP_11: &str = "http://schemas.xmlsoap.org/soap/envelope/";

const SOAP_12: &str = "http://www.w3.org/2003/05/soap-envelope";

/// A SOAP 1.1 envelope that borrows its input.
pub struct Envelope<'d> {
    document: Document<'d>,
    content: u32,
}

/// A request to perform an operation.
#[derive(Clone, Copy)]
pub struct Request<'e> {
    /// The operation that the body's element selects.
    pub operation: &'e Operation,
    /// The arguments, which can be read by name or by position.
    pub arguments: View<'e>,
    /// Whether `SOAPAction` names a different operation, which a server might perform instead of the body's.
    pub is_action_other: bool,
}

/// A response to an operation: its result or a fault.
pub enum Response<'e> {
    /// The operation succeeded.
    Returned {
        /// The response's element in the body.
        all: View<'e>,
        /// The only field of `all` (document/literal wrapped), or `None` if its type has more or fewer fields.
        result: Option<View<'e>>,
    },
    /// The operation failed with a fault.
    Fault(Fault<'e>),
}

/// A SOAP fault, with the reason for a failed operation.
#[derive(Clone, Copy)]
pub struct Fault<'e> {
    /// The code with its namespace prefix, such as `soap:Client`.
    pub code: &'e str,
    /// A human-readable reason; empty if the fault has none.
    pub string: &'e str,
    /// Further details, or `None` if the fault has none. The types of their elements are unknown.
    pub detail: Option<View<'e>>,
}

impl Fault<'_> {
    /// The code without its prefix, such as `Client`.
    pub fn code_name(&self) -> &str {
        self.code.rsplit(':').next().unwrap_or(self.code).trim()
    }
}

impl<'d> Envelope<'d> {
    /// Parses an envelope with one element in its body. Fails for any other XML, a document type, or an exceeded limit.
    /// An envelope of SOAP 1.2 counts as over a limit.
    pub fn parse(bytes: &'d [u8], limits: &Limits) -> Result<Envelope<'d>, DecodeError> {
        let document = Document::parse("", bytes, limits)?;
        let root = document.root();
        if root.is(SOAP_12, "Envelope") {
            let what = "a SOAP 1.2 envelope; only SOAP 1.1 is supported".to_owned();
            return Err(DecodeError::over(root.element().at, what));
        }
        if !root.is(SOAP_11, "Envelope") {
            return root.wrong(format!("the root is `{}`, not a SOAP 1.1 envelope", root.name()));
        }
        let bodies = root.children_named(SOAP_11, "Body").collect::<Vec<_>>();
        let [body] = bodies[..] else {
            return root.wrong(format!("{} bodies in the envelope, expected one", bodies.len()));
        };
        let contents = body.children().collect::<Vec<_>>();
        let [Node { index: content, .. }] = contents[..] else {
            return body.wrong(format!("{} elements in the body, expected one", contents.len()));
        };
        Ok(Envelope { document, content })
    }

    fn node(&self) -> Node<'_> {
        Node { document: &self.document, index: self.content }
    }

    /// Namespace and name of the element in the body.
    pub fn content(&self) -> (&str, &str) {
        self.node().full_name()
    }

    fn view<'e>(&'e self, wsdl: &'e Wsdl, message: &Message) -> View<'e> {
        View::new(self.node(), wsdl, Type::Complex(message.content))
    }

    /// Reads a request. `action` is the value of `SOAPAction`, if any. Fails if no operation has the body's element.
    pub fn request<'e>(&'e self, wsdl: &'e Wsdl, action: Option<&str>) -> Result<Request<'e>, DecodeError> {
        let (namespace, name) = self.content();
        let Some(operation) = wsdl.operation_by_element(namespace, name) else {
            return self.node().wrong(format!("no operation has element `{name}` in namespace `{namespace}`"));
        };
        let action = action.map(|action| action.trim().trim_matches('"')).filter(|action| !action.is_empty());
        let named = action.map(|action| wsdl.operation_by_action(action).map(|operation| &operation.name));
        let is_action_other = named.is_some_and(|named| named != Some(&operation.name));
        Ok(Request { operation, arguments: self.view(wsdl, &operation.input), is_action_other })
    }

    /// Reads a response to `operation`. Fails if the body has neither a fault nor the operation's element.
    pub fn response<'e>(&'e self, wsdl: &'e Wsdl, operation: &Operation) -> Result<Response<'e>, DecodeError> {
        let (namespace, name) = self.content();
        if (namespace, name) == (SOAP_11, "Fault") {
            return Ok(Response::Fault(self.fault(wsdl)));
        }
        let is = |output: &&Message| output.element == name && output.namespace == namespace;
        let Some(output) = operation.output.as_ref().filter(is) else {
            let expected = operation.output.as_ref().map_or("a fault or nothing", |output| &output.element);
            return self.node().wrong(format!("expected `{expected}` in the body, found `{name}`"));
        };
        let all = self.view(wsdl, output);
        let fields = wsdl.complex(output.content).fields.as_slice();
        let result = if let [only] = fields { all.get(&only.name) } else { None };
        Ok(Response::Returned { all, result })
    }

    fn fault<'e>(&'e self, wsdl: &'e Wsdl) -> Fault<'e> {
        // SOAP 1.1 requires that elements of a fault have no namespace, but some servers add one.
        let child = |name: &str| self.node().children().find(|child| child.name() == name);
        let text = |name: &str| child(name).map(|child| child.element().text.trim());
        Fault {
            code: text("faultcode").unwrap_or_default(),
            string: text("faultstring").unwrap_or_default(),
            detail: child("detail").map(|detail| View::new(detail, wsdl, Type::Any)),
        }
    }
}
