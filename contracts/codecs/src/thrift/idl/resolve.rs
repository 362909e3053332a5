//! Looks up names and merges files into one [`Schema`].

use std::collections::{BTreeMap, BTreeSet};

use config::nearest::did_you_mean;

use super::syntax::{self, Body, Const, Definition, Document, FieldDef, TypeRef};
use super::{FILES_MAX, TEXT_MAX_BYTES, mistake_at};
use crate::mistake::{MISTAKES_MAX, Mistake};
use crate::thrift::schema::{
    Constant, Enum, EnumId, Field, Method, Requirement, Schema, Service, Struct, StructId, StructKind, Type,
};

/// Maximum number of types within one type.
const TYPE_SIZE_MAX: usize = 64;

/// Maximum number of values in constants and defaults, which references can double per line.
const VALUES_MAX: usize = 1 << 16;

const DEFINITIONS_MAX: usize = 1 << 14;

/// Maximum number of methods of all services; inherited ones count each time.
const METHODS_MAX: usize = 1 << 16;

const BASE_TYPES: [(&str, Type); 10] = [
    ("bool", Type::Bool),
    ("byte", Type::Byte),
    ("i8", Type::Byte),
    ("i16", Type::I16),
    ("i32", Type::I32),
    ("i64", Type::I64),
    ("double", Type::Double),
    ("string", Type::String),
    ("binary", Type::Binary),
    ("uuid", Type::Uuid),
];

struct File {
    source: String,
    text: String,
    document: Document,
    /// Included files by the prefix of their types.
    includes: BTreeMap<String, usize>,
    /// Definitions by name.
    names: BTreeMap<String, usize>,
    /// Prefix of its names in the schema.
    prefix: String,
}

/// A definition: file index and definition index.
type Key = (usize, usize);

pub(super) struct Resolver<'m> {
    files: Vec<File>,
    pub(super) schema: Schema,
    structs: BTreeMap<Key, StructId>,
    enums: BTreeMap<Key, EnumId>,
    typedefs: BTreeMap<Key, Option<Type>>,
    /// Typedefs and constants being resolved; meeting one again is a cycle.
    open: Vec<Key>,
    mistakes: &'m mut Vec<Mistake>,
    pub(super) values_left: usize,
    methods_left: usize,
}

/// Reads and resolves all files. Ignore the result if it added an error.
pub(super) fn resolve(
    source: &str,
    text: &str,
    include: &mut dyn FnMut(&str) -> Result<String, String>,
    mistakes: &mut Vec<Mistake>,
) -> Schema {
    let mut resolver = Resolver {
        files: Vec::new(),
        schema: Schema::default(),
        structs: BTreeMap::new(),
        enums: BTreeMap::new(),
        typedefs: BTreeMap::new(),
        open: Vec::new(),
        mistakes,
        values_left: VALUES_MAX,
        methods_left: METHODS_MAX,
    };
    resolver.load(source, text, include);
    // A file with syntax errors is not resolved: follow-up errors would hide them.
    if resolver.mistakes.is_empty() {
        resolver.declare();
        resolver.types();
        resolver.constants();
        resolver.services();
    }
    let order = resolver.files.iter().enumerate().map(|(index, file)| (file.source.clone(), index));
    let order = order.collect::<BTreeMap<_, _>>();
    resolver.mistakes.sort_by_key(|mistake| (order.get(&mistake.source).copied(), mistake.line, mistake.column));
    resolver.mistakes.dedup();
    resolver.mistakes.truncate(MISTAKES_MAX);
    resolver.schema
}

fn stem(path: &str) -> String {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    name.strip_suffix(".thrift").unwrap_or(name).to_owned()
}

impl Resolver<'_> {
    pub(super) fn tell(&mut self, file: usize, at: usize, text: String, hint: Option<String>) {
        let file = &self.files[file];
        self.mistakes.push(mistake_at(&file.source, &file.text, at, text, hint));
    }

    fn load(&mut self, source: &str, text: &str, include: &mut dyn FnMut(&str) -> Result<String, String>) {
        let mut by_path = BTreeMap::<String, usize>::from([(source.to_owned(), 0)]);
        let mut bytes = text.len();
        self.add(source, text.to_owned(), String::new());
        let mut next = 0;
        while next < self.files.len() {
            for (at, path) in self.files[next].document.includes.clone() {
                let index = match by_path.get(&path) {
                    Some(index) => *index,
                    None if self.files.len() > FILES_MAX => {
                        return self.tell(next, at, format!("more than {FILES_MAX} included files"), None);
                    }
                    None => match include(&path) {
                        Ok(text) => {
                            bytes = bytes.saturating_add(text.len());
                            if bytes > TEXT_MAX_BYTES {
                                let limit = format!("more than {TEXT_MAX_BYTES} bytes in total with this file");
                                return self.tell(next, at, limit, None);
                            }
                            let index = self.files.len();
                            by_path.insert(path.clone(), index);
                            self.add(&path, text, format!("{}.", stem(&path)));
                            index
                        }
                        Err(why) => {
                            self.tell(next, at, format!("`{path}` cannot be included: {why}"), None);
                            continue;
                        }
                    },
                };
                if index == 0 {
                    self.tell(next, at, format!("`{path}` includes itself"), None);
                } else if let Some(other) = self.files[next].includes.insert(stem(&path), index)
                    && other != index
                {
                    self.tell(next, at, format!("two included files are named `{}`", stem(&path)), None);
                }
            }
            next += 1;
        }
        if self.files.iter().map(|file| file.document.definitions.len()).sum::<usize>() > DEFINITIONS_MAX {
            return self.tell(0, 0, format!("more than {DEFINITIONS_MAX} definitions"), None);
        }
        self.circle();
    }

    fn add(&mut self, source: &str, text: String, prefix: String) {
        if text.len() > TEXT_MAX_BYTES {
            let document = Document { includes: Vec::new(), definitions: Vec::new() };
            let (includes, names) = (BTreeMap::new(), BTreeMap::new());
            self.files.push(File { source: source.to_owned(), text: String::new(), document, includes, names, prefix });
            return self.tell(self.files.len() - 1, 0, format!("more than {TEXT_MAX_BYTES} bytes"), None);
        }
        let (document, found) = syntax::parse_document(&text);
        let mistakes = found.into_iter().map(|found| mistake_at(source, &text, found.at, found.text, None));
        self.mistakes.extend(mistakes.take(MISTAKES_MAX));
        let (includes, names) = (BTreeMap::new(), BTreeMap::new());
        self.files.push(File { source: source.to_owned(), text, document, includes, names, prefix });
    }

    /// Rejects cyclic includes, as the compiler does.
    fn circle(&mut self) {
        let mut done = BTreeSet::new();
        while let Some(ready) = (0..self.files.len()).find(|index| {
            !done.contains(index) && self.files[*index].includes.values().all(|included| done.contains(included))
        }) {
            done.insert(ready);
        }
        if let Some(index) =
            (1..self.files.len()).find(|index| !done.contains(index) && !self.files[*index].includes.is_empty())
            && self.reaches(index, index)
        {
            let at = self.files[index].document.includes.first().map_or(0, |include| include.0);
            self.tell(index, at, "circular include".to_owned(), None);
        }
    }

    fn reaches(&self, from: usize, to: usize) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(index) = open.pop() {
            for included in self.files[index].includes.values() {
                if *included == to {
                    return true;
                }
                if seen.insert(*included) {
                    open.push(*included);
                }
            }
        }
        false
    }

    fn definition(&self, key: Key) -> &Definition {
        &self.files[key.0].document.definitions[key.1]
    }

    fn keys(&self) -> Vec<Key> {
        let of_file = |(file, own): (usize, &File)| (0..own.document.definitions.len()).map(move |index| (file, index));
        self.files.iter().enumerate().flat_map(of_file).collect()
    }

    /// Assigns IDs to all structs and enums, so that types may refer to each other in any order.
    fn declare(&mut self) {
        for key in self.keys() {
            let definition = self.definition(key);
            let (at, name) = (definition.at, definition.name.clone());
            if self.files[key.0].names.insert(name.clone(), key.1).is_some() {
                self.tell(key.0, at, format!("`{name}` is defined twice"), None);
            }
            if BASE_TYPES.iter().any(|base| base.0 == name) || ["list", "set", "map", "void"].contains(&name.as_str()) {
                self.tell(key.0, at, format!("`{name}` is a built-in type"), None);
            }
            let full = format!("{}{name}", self.files[key.0].prefix);
            match &self.definition(key).body {
                Body::Struct { kind, .. } => {
                    let kind = *kind;
                    let id = self.push_struct(Struct { name: full, kind, fields: Vec::new(), order: Vec::new() });
                    self.structs.insert(key, id);
                }
                Body::Enum { .. } => {
                    let members = self.members(key);
                    self.enums.insert(key, EnumId(self.schema.enums.len() as u32));
                    self.schema.enums.push(Enum { name: full, members });
                }
                _ => {}
            }
        }
    }

    fn push_struct(&mut self, structure: Struct) -> StructId {
        self.schema.structs.push(structure);
        StructId(self.schema.structs.len() as u32 - 1)
    }

    fn members(&mut self, key: Key) -> Vec<(String, i32)> {
        let Body::Enum { members } = &self.definition(key).body else { return Vec::new() };
        let members = members.clone();
        let (mut read, mut next) = (Vec::<(String, i32)>::new(), 0_i64);
        for (at, name, number) in members {
            if read.iter().any(|member| member.0 == name) {
                self.tell(key.0, at, format!("duplicate `{name}` in this enum"), None);
            }
            let number = number.unwrap_or(next);
            next = number.saturating_add(1);
            match i32::try_from(number) {
                Ok(number) => read.push((name, number)),
                Err(_) => self.tell(key.0, at, format!("`{name}` is {number}, which does not fit in an i32"), None),
            }
        }
        read
    }

    pub(super) fn look_up(&self, file: usize, name: &str) -> Option<Key> {
        match name.split_once('.') {
            None => self.files[file].names.get(name).map(|index| (file, *index)),
            Some((prefix, rest)) => {
                let included = *self.files[file].includes.get(prefix)?;
                self.files[included].names.get(rest).map(|index| (included, *index))
            }
        }
    }

    /// Resolves a type. Nested typedefs could double its size per line, so the size is limited.
    pub(super) fn ty(&mut self, file: usize, ty: &TypeRef) -> Option<Type> {
        let found = self.any_ty(file, ty)?;
        if size(&found) > TYPE_SIZE_MAX {
            let at = place(ty);
            self.tell(file, at, format!("a type made of more than {TYPE_SIZE_MAX} types"), None);
            return None;
        }
        Some(found)
    }

    fn any_ty(&mut self, file: usize, ty: &TypeRef) -> Option<Type> {
        Some(match ty {
            TypeRef::List(element) => Type::List(Box::new(self.ty(file, element)?)),
            TypeRef::Set(element) => Type::Set(Box::new(self.ty(file, element)?)),
            TypeRef::Map(key, value) => {
                let key = self.ty(file, key);
                let value = self.ty(file, value)?;
                Type::Map(Box::new(key?), Box::new(value))
            }
            TypeRef::Named(at, name) => {
                if let Some((_, base)) = BASE_TYPES.iter().find(|base| base.0 == name) {
                    return Some(base.clone());
                }
                let Some(key) = self.look_up(file, name) else {
                    self.no_type(file, *at, name);
                    return None;
                };
                if let Some(id) = self.structs.get(&key) {
                    return Some(Type::Struct(*id));
                }
                if let Some(id) = self.enums.get(&key) {
                    return Some(Type::Enum(*id));
                }
                if !matches!(self.definition(key).body, Body::Typedef { .. }) {
                    self.tell(file, *at, format!("`{name}` is not a type"), None);
                    return None;
                }
                return self.typedef(key);
            }
        })
    }

    fn no_type(&mut self, file: usize, at: usize, name: &str) {
        let names = |file: usize| self.files[file].names.keys().map(String::as_str);
        let hint = match name.split_once('.') {
            None if name == "void" => Some("`void` is only valid as a return type".to_owned()),
            None => {
                let base = BASE_TYPES.iter().map(|base| base.0);
                did_you_mean(name, names(file).chain(base).chain(["list", "set", "map"]))
            }
            Some((prefix, rest)) => match self.files[file].includes.get(prefix) {
                None => Some(format!("no included file is named `{prefix}`")),
                Some(included) => did_you_mean(rest, names(*included)),
            },
        };
        self.tell(file, at, format!("unknown type `{name}`"), hint);
    }

    fn typedef(&mut self, key: Key) -> Option<Type> {
        if let Some(known) = self.typedefs.get(&key) {
            return known.clone();
        }
        if self.open.contains(&key) || self.open.len() > 100 {
            let definition = self.definition(key);
            let (at, name) = (definition.at, definition.name.clone());
            self.tell(key.0, at, format!("`{name}` is defined in terms of itself"), None);
            return None;
        }
        let Body::Typedef { ty } = &self.files[key.0].document.definitions[key.1].body else { return None };
        // Cloned to end the borrow: the lookup needs `self`.
        let named = ty.clone();
        self.open.push(key);
        let ty = self.ty(key.0, &named);
        self.open.pop();
        self.typedefs.insert(key, ty.clone());
        ty
    }

    fn types(&mut self) {
        for key in self.keys() {
            if matches!(self.definition(key).body, Body::Typedef { .. }) {
                self.typedef(key);
            }
        }
        for (key, id) in self.structs.clone() {
            let Body::Struct { kind, fields } = &mut self.files[key.0].document.definitions[key.1].body else {
                continue;
            };
            let (kind, fields) = (*kind, std::mem::take(fields));
            let (mut read, order) = self.fields(key.0, &fields);
            if kind == StructKind::Union {
                read.iter_mut().for_each(|field| field.requirement = Requirement::Optional);
            }
            let structure = &mut self.schema.structs[id.0 as usize];
            (structure.fields, structure.order) = (read, order);
            if let Body::Struct { fields: empty, .. } = &mut self.files[key.0].document.definitions[key.1].body {
                *empty = fields;
            }
        }
    }

    /// Fields by number, and their indexes in file order. Defaults follow when types are known.
    fn fields(&mut self, file: usize, fields: &[FieldDef]) -> (Vec<Field>, Vec<u16>) {
        let mut read = Vec::<Field>::new();
        let mut unnumbered = 0_i16;
        for field in fields {
            let id = match field.id {
                Some(id) => id,
                None => {
                    unnumbered = unnumbered.saturating_sub(1);
                    i64::from(unnumbered)
                }
            };
            if (field.id.is_some() && id < 1) || i16::try_from(id).is_err() {
                self.tell(file, field.at, format!("`{}` has number {id}, which must be 1 to 32767", field.name), None);
                continue;
            }
            let id = i16::try_from(id).unwrap_or(i16::MAX);
            if let Some(other) = read.iter().find(|other| other.id == id) {
                self.tell(file, field.at, format!("`{}` and `{}` both have number {id}", other.name, field.name), None);
                continue;
            }
            if read.iter().any(|other| other.name == field.name) {
                self.tell(file, field.at, format!("duplicate `{}`", field.name), None);
                continue;
            }
            let Some(ty) = self.ty(file, &field.ty) else { continue };
            read.push(Field { id, name: field.name.clone(), ty, requirement: field.requirement, default: None });
        }
        let ids = read.iter().map(|field| field.id).collect::<Vec<_>>();
        read.sort_by_key(|field| field.id);
        let place = |id: &i16| read.iter().position(|field| field.id == *id).unwrap_or(0) as u16;
        let order = ids.iter().map(place).collect();
        (read, order)
    }

    fn constants(&mut self) {
        for key in self.keys() {
            let definition = self.definition(key);
            let name = format!("{}{}", self.files[key.0].prefix, definition.name);
            let Body::Constant { ty, .. } = &definition.body else { continue };
            let named = ty.clone();
            let Some(ty) = self.ty(key.0, &named) else { continue };
            if let Some(value) = self.constant(key, &ty) {
                self.schema.constants.push(Constant { name, ty, value });
            }
        }
        for (key, id) in self.structs.clone() {
            let Body::Struct { fields, .. } = &mut self.files[key.0].document.definitions[key.1].body else { continue };
            let fields = std::mem::take(fields);
            self.defaults(key.0, id, &fields);
        }
    }

    pub(super) fn constant(&mut self, key: Key, ty: &Type) -> Option<crate::value::Value> {
        if self.open.contains(&key) || self.open.len() > 100 {
            let definition = self.definition(key);
            let (at, name) = (definition.at, definition.name.clone());
            self.tell(key.0, at, format!("`{name}` is defined in terms of itself"), None);
            return None;
        }
        let Body::Constant { value, .. } = &mut self.files[key.0].document.definitions[key.1].body else { return None };
        let empty = Const { at: value.at, kind: syntax::ConstKind::Integer(0) };
        let lent = std::mem::replace(value, empty);
        self.open.push(key);
        let read = self.value(key.0, &lent, ty);
        self.open.pop();
        if let Body::Constant { value, .. } = &mut self.files[key.0].document.definitions[key.1].body {
            *value = lent;
        }
        read
    }

    pub(super) fn is_constant(&self, key: Key) -> bool {
        matches!(self.definition(key).body, Body::Constant { .. })
    }

    pub(super) fn enum_of(&self, key: Key) -> Option<EnumId> {
        self.enums.get(&key).copied()
    }

    fn defaults(&mut self, file: usize, id: StructId, fields: &[FieldDef]) {
        for field in fields {
            let Some(default) = &field.default else { continue };
            let known = self.schema.structs[id.0 as usize].fields.iter().position(|other| other.name == field.name);
            let Some(index) = known else { continue };
            let ty = self.schema.structs[id.0 as usize].fields[index].ty.clone();
            let value = self.value(file, default, &ty);
            self.schema.structs[id.0 as usize].fields[index].default = value;
        }
    }

    fn services(&mut self) {
        let keys = self.keys();
        let services = keys.into_iter().filter(|key| matches!(self.definition(*key).body, Body::Service { .. }));
        let mut open = services.collect::<Vec<_>>();
        let mut done = BTreeMap::<Key, usize>::new();
        // A service follows the one it extends. The remaining ones extend themselves.
        while !open.is_empty() {
            let mut later = Vec::new();
            let before = open.len();
            for key in open {
                let Body::Service { extends, .. } = &self.definition(key).body else { continue };
                let parent = match extends.clone() {
                    None => None,
                    Some((at, name)) => match self.look_up(key.0, &name) {
                        Some(parent) if matches!(self.definition(parent).body, Body::Service { .. }) => {
                            if !done.contains_key(&parent) {
                                later.push(key);
                                continue;
                            }
                            done.get(&parent).copied()
                        }
                        _ => {
                            self.tell(key.0, at, format!("unknown service `{name}`"), None);
                            None
                        }
                    },
                };
                done.insert(key, self.schema.services.len());
                let service = self.service(key, parent);
                self.schema.services.push(service);
            }
            if later.len() == before {
                let key = later[0];
                let definition = self.definition(key);
                let (at, name) = (definition.at, definition.name.clone());
                return self.tell(key.0, at, format!("service `{name}` extends itself"), None);
            }
            open = later;
        }
    }

    fn service(&mut self, key: Key, parent: Option<usize>) -> Service {
        let definition = &mut self.files[key.0].document.definitions[key.1];
        let Body::Service { methods, .. } = &mut definition.body else { unreachable!("only services are requested") };
        let methods = std::mem::take(methods);
        let name = format!("{}{}", self.files[key.0].prefix, self.definition(key).name);
        let mut read = parent.map(|parent| self.schema.services[parent].methods.clone()).unwrap_or_default();
        let all = read.len() + methods.len();
        if all > self.methods_left {
            let at = self.definition(key).at;
            self.tell(key.0, at, format!("services with more than {METHODS_MAX} methods"), None);
            read.clear();
        }
        self.methods_left = self.methods_left.saturating_sub(all);
        for method in methods {
            if read.iter().any(|other| other.name == method.name) {
                self.tell(key.0, method.at, format!("duplicate method `{}`", method.name), None);
                continue;
            }
            if method.is_oneway && (method.returns.is_some() || !method.throws.is_empty()) {
                let text = format!("`{}` is `oneway`, so it cannot return or throw anything", method.name);
                self.tell(key.0, method.at, text, Some("make it `void` without `throws`".to_owned()));
            }
            let returns = method.returns.as_ref().and_then(|ty| self.ty(key.0, ty));
            let full = format!("{name}.{}", method.name);
            let (fields, order) = self.fields(key.0, &method.arguments);
            let arguments =
                self.push_struct(Struct { name: format!("{full}.arguments"), kind: StructKind::Struct, fields, order });
            self.defaults(key.0, arguments, &method.arguments);
            let result = self.result(key.0, &full, returns.clone(), &method.throws);
            read.push(Method { name: method.name, is_oneway: method.is_oneway, arguments, result, returns });
        }
        Service { name, methods: read }
    }

    fn result(&mut self, file: usize, full: &str, returns: Option<Type>, throws: &[FieldDef]) -> StructId {
        let (mut fields, order) = self.fields(file, throws);
        for field in throws {
            let known = fields.iter().find(|other| other.name == field.name);
            let is_exception = |ty: &Type| matches!(ty, Type::Struct(id) if self.schema.structs[id.0 as usize].kind == StructKind::Exception);
            if known.is_some_and(|known| !is_exception(&known.ty)) {
                self.tell(file, field.at, format!("`{}` is thrown but is not an exception", field.name), None);
            }
        }
        fields.iter_mut().for_each(|field| field.requirement = Requirement::Optional);
        let mut order = order;
        if let Some(ty) = returns {
            let success =
                Field { id: 0, name: "success".to_owned(), ty, requirement: Requirement::Optional, default: None };
            // Exceptions without a number come before it.
            let place = fields.partition_point(|field| field.id < 0);
            fields.insert(place, success);
            order.iter_mut().for_each(|index| *index += u16::from(usize::from(*index) >= place));
            order.insert(0, place as u16);
        }
        let name = format!("{full}.result");
        self.push_struct(Struct { name, kind: StructKind::Struct, fields, order })
    }
}

fn size(ty: &Type) -> usize {
    match ty {
        Type::List(element) | Type::Set(element) => 1 + size(element),
        Type::Map(key, value) => 1 + size(key) + size(value),
        _ => 1,
    }
}

fn place(ty: &TypeRef) -> usize {
    match ty {
        TypeRef::Named(at, _) => *at,
        TypeRef::List(element) | TypeRef::Set(element) | TypeRef::Map(element, _) => place(element),
    }
}
