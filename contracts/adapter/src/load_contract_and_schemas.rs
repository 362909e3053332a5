//! Loads a contract with its IDL and WSDL files, and converts these files to schemas of the contract language.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use codecs::mistake::{Mistake, Mistakes};
use codecs::{soap, thrift};
use contract::{Field, Finding, Schema, Signature, Type};

use crate::config::Protocol;

#[derive(Clone, Debug)]
pub(crate) enum File {
    Thrift(thrift::Schema),
    Soap(soap::Wsdl),
}

pub(crate) type Files = HashMap<PathBuf, File>;

const FILE_MAX_BYTES: u64 = 16 << 20;

fn load(path: &Path) -> Result<Result<File, Mistakes>, String> {
    let source = path.display().to_string();
    let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
    let text = read_file(path)?;
    let mut include = |name: &str| read_file(&folder.join(name));
    Ok(match path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("wsdl")) {
        true => soap::wsdl::parse(&source, &text, &mut include).map(File::Soap),
        false => thrift::idl::parse(&source, &text, &mut include).map(File::Thrift),
    })
}

fn read_file(path: &Path) -> Result<String, String> {
    let told = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let length = std::fs::metadata(path).map_err(told)?.len();
    if length > FILE_MAX_BYTES {
        return Err(format!("{} has {length} bytes, over the limit of {FILE_MAX_BYTES}", path.display()));
    }
    std::fs::read_to_string(path).map_err(told)
}

/// The readable parts of a contract and of its schemas.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The contract. Its findings include unreadable schemas that its text names.
    pub checked: contract::Checked,
    /// Errors in the schema files that could be read.
    pub schemas: Vec<Mistake>,
    /// Schemas given by the caller that cannot be read, each with the reason.
    pub(crate) unreadable: Vec<String>,
    pub(crate) files: Files,
}

/// Reads a contract, the schemas that its text names (relative to its directory), and the schemas of `protocols`. Fails
/// only if the contract cannot be read; the result includes all other errors.
pub fn check_contract(path: &Path, protocols: &[Protocol]) -> Result<Loaded, String> {
    let text = read_file(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let named = contract::check(&text, None).file.schemas;
    let mut schema = Schema::default();
    let mut loaded = Loaded::default();
    let (mut findings, mut is_broken) = (Vec::new(), false);
    let in_contract = named.iter().map(|name| (folder.join(&name.text), None, Some(name.span)));
    let by_service = protocols.iter().filter_map(|Protocol { service, schema, schema_service, .. }| {
        Some((schema.clone()?, Some((schema_service.as_str(), service.as_str())), None))
    });
    let sources = in_contract.chain(by_service).collect::<Vec<_>>();
    let is_any = !sources.is_empty();
    for (path, service, span) in sources {
        match (load(&path), span) {
            (Ok(Ok(file)), _) => {
                let (mut found, is_wsdl) = match &file {
                    File::Thrift(schema) => (of_thrift(schema), false),
                    File::Soap(wsdl) => (of_wsdl(wsdl), true),
                };
                if let Some((from, to)) = service {
                    // A service of the contract maps to the WSDL service with its name, or to the WSDL's only service.
                    let is_only = is_wsdl && found.services.len() == 1;
                    found.services.retain(|name, _| is_only || name == from);
                    found.services = found.services.into_values().map(|own| (to.to_owned(), own)).collect();
                }
                schema.extend(found);
                loaded.files.insert(path, file);
                continue;
            }
            (Err(why), Some(span)) => findings.push(Finding::mistake(&text, span, "schema", why)),
            // The contract, the configuration and includes may all name the same file; its error is reported once.
            (Err(why), None) if loaded.unreadable.contains(&why) => {}
            (Err(why), None) => loaded.unreadable.push(why),
            (Ok(Err(mistakes)), _) => {
                let is_new = |mistake: &Mistake| !loaded.schemas.contains(mistake);
                let new = mistakes.0.into_iter().filter(is_new).collect::<Vec<_>>();
                loaded.schemas.extend(new);
            }
        }
        is_broken = true;
    }
    loaded.checked = match is_broken {
        // Types from the broken schemas are unknown, so missing names are not errors.
        true => contract::check_partly(&text, &schema),
        false => contract::check(&text, is_any.then_some(&schema)),
    };
    if !findings.is_empty() {
        loaded.checked.contract = None;
        loaded.checked.findings.extend(findings);
        loaded.checked.findings.sort_by_key(|finding| finding.span.start);
    }
    Ok(loaded)
}

fn of_thrift(schema: &thrift::Schema) -> Schema {
    let field = |field: &thrift::Field| Field {
        name: field.name.clone(),
        of: thrift_type(schema, &field.ty),
        required: field.requirement == thrift::Requirement::Required,
    };
    let mut out = Schema::default();
    for (_, structure) in schema.structs() {
        out.types.insert(structure.name.clone(), structure.fields.iter().map(field).collect());
    }
    for service in &schema.services {
        let signature = |method: &thrift::Method| Signature {
            params: schema.structure(method.arguments).in_order().map(field).collect(),
            result: method.returns.as_ref().map(|ty| thrift_type(schema, ty)),
        };
        let operations = service.methods.iter().map(|method| (method.name.clone(), signature(method))).collect();
        out.services.insert(service.name.clone(), operations);
    }
    out
}

fn thrift_type(schema: &thrift::Schema, ty: &thrift::Type) -> Type {
    let of = |ty: &thrift::Type| Box::new(thrift_type(schema, ty));
    match ty {
        thrift::Type::Bool => Type::Bool,
        thrift::Type::Byte | thrift::Type::I16 | thrift::Type::I32 | thrift::Type::I64 | thrift::Type::Enum(_) => {
            Type::Int
        }
        thrift::Type::Double => Type::Float,
        thrift::Type::String => Type::Text,
        thrift::Type::Binary | thrift::Type::Uuid => Type::Bytes,
        thrift::Type::Struct(id) => Type::Named(schema.structure(*id).name.clone()),
        thrift::Type::List(item) | thrift::Type::Set(item) => Type::List(of(item)),
        thrift::Type::Map(key, value) => Type::Map(of(key), of(value)),
    }
}

fn of_wsdl(wsdl: &soap::Wsdl) -> Schema {
    let mut out = Schema::default();
    for service in &wsdl.services {
        let mut operations = BTreeMap::new();
        for operation in &service.operations {
            let params = fields(wsdl, operation.input.content, &mut out.types);
            let result =
                operation.output.as_ref().and_then(|output| match wsdl.complex(output.content).fields.as_slice() {
                    [] => None,
                    [_] => fields(wsdl, output.content, &mut out.types).pop().map(|field| field.of),
                    _ => Some(Type::Record(fields(wsdl, output.content, &mut out.types))),
                });
            operations.insert(operation.name.clone(), Signature { params, result });
        }
        out.services.insert(service.name.clone(), operations);
    }
    out
}

fn fields(wsdl: &soap::Wsdl, id: soap::ComplexId, types: &mut BTreeMap<String, Vec<Field>>) -> Vec<Field> {
    let fields = wsdl.complex(id).fields.iter().map(|field| {
        let of = soap_type(wsdl, field.ty, types);
        let of = if field.is_list() { Type::List(Box::new(of)) } else { of };
        let required = field.is_list() || (field.min > 0 && !field.is_nillable);
        Field { name: field.name.clone(), of, required }
    });
    fields.collect()
}

fn soap_type(wsdl: &soap::Wsdl, ty: soap::Type, types: &mut BTreeMap<String, Vec<Field>>) -> Type {
    match ty {
        soap::Type::Any => Type::Any,
        soap::Type::Simple(soap::Builtin::Text, Some(id)) => Type::Choice(wsdl.enumeration(id).values.clone()),
        soap::Type::Simple(soap::Builtin::Text, None) => Type::Text,
        soap::Type::Simple(soap::Builtin::Boolean, _) => Type::Bool,
        soap::Type::Simple(soap::Builtin::Integer(..), _) => Type::Int,
        soap::Type::Simple(soap::Builtin::Float, _) => Type::Float,
        soap::Type::Simple(soap::Builtin::Base64 | soap::Builtin::Hex, _) => Type::Bytes,
        soap::Type::Complex(id) => {
            let complex = wsdl.complex(id);
            if let Some(item) = complex.array() {
                return Type::List(Box::new(soap_type(wsdl, item.ty, types)));
            }
            if !types.contains_key(&complex.name) {
                // Registering the name first ends the recursion of a type that contains itself.
                types.insert(complex.name.clone(), Vec::new());
                let fields = fields(wsdl, id, types);
                types.insert(complex.name.clone(), fields);
            }
            Type::Named(complex.name.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_rejects_paths_that_cannot_match() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.contract");
        for (operation, message) in [
            ("GET \"users\"", "a path must start with `/`"),
            ("GET \"/a?b=1\"", "must not contain `?`"),
            ("GET \"http://x/y\"", "a path must start with `/`"),
            ("GET \"/x/{a}/{a}\"", "duplicate name `a`"),
            ("GET \"/x/{a}{b}\"", "a second name in one segment"),
            ("GET \"/x/{a\"", "`{` without `}`"),
            ("get \"/low\"", "method `get` is not in upper case"),
        ] {
            std::fs::write(&path, format!("contract 1\nservice Any {{ {operation}(); }}\n")).unwrap();
            let checked = check_contract(&path, &[]).unwrap().checked;
            let mistakes = checked.findings.iter().filter(|finding| finding.severity == contract::Severity::Mistake);
            let mistakes = mistakes.map(|finding| finding.message.as_str()).collect::<Vec<_>>();
            assert!(mistakes.len() == 1 && mistakes[0].contains(message), "{operation}: {mistakes:?}");
            assert!(checked.contract.is_none(), "{operation}");
        }
        std::fs::write(&path, "contract 1\nservice Any { GET \"/x/{a}/b{c}\"(a); }\n").unwrap();
        assert!(check_contract(&path, &[]).unwrap().checked.contract.is_some());
    }
}
