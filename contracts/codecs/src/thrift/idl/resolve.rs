//! Resolves the names of parsed IDL files and their includes into a schema.

use std::collections::{BTreeMap, BTreeSet};

use config::nearest::did_you_mean;

use super::parse::{Body, CONTAINER_TYPES, Definition, Document, FieldDef, MethodDef, TypeRef, parse_document};
use super::{FILES_MAX, TEXT_MAX_BYTES};
use crate::mistake::{MISTAKES_MAX, Mistake, Mistakes, ReadFile};
use crate::thrift::schema::{
    BASE_TYPES, Enum, EnumId, Field, Method, Requirement, Schema, Service, Struct, StructId, StructKind, Type,
};
use crate::value::Value;

const TYPE_SIZE_MAX: usize = 64;

/// Maximum number of values in constants and defaults. A line that uses the previous one twice doubles the number.
const VALUES_MAX: usize = 1 << 16;

const DEFINITIONS_MAX: usize = 1 << 14;

/// Maximum number of typedefs or constants that refer to each other in a chain.
const CHAIN_MAX: usize = 100;

/// Maximum number of methods of all services. An inherited method counts once per service.
const METHODS_MAX: usize = 1 << 16;

struct File {
    source: String,
    text: String,
    document: Document,
    /// Included files by the prefix of their types.
    includes: BTreeMap<String, usize>,
    /// Definitions by name. The first of several with the same name is kept.
    names: BTreeMap<String, usize>,
    prefix: String,
}

impl File {
    fn parse(source: &str, text: String, prefix: String, mistakes: &mut Vec<Mistake>) -> File {
        let (document, found) = parse_document(&text);
        let found = found.into_iter().map(|(at, what)| Mistake::new(source, &text, at, what, None));
        mistakes.extend(found.take(MISTAKES_MAX));
        let definitions = document.definitions.iter().enumerate().rev();
        let names = definitions.map(|(index, definition)| (definition.name.clone(), index)).collect();
        File { source: source.to_owned(), text, document, includes: BTreeMap::new(), names, prefix }
    }

    fn mistake(&self, at: usize, text: impl Into<String>) -> Mistake {
        Mistake::new(&self.source, &self.text, at, text, None)
    }
}

type Key = (usize, usize);

#[derive(Default)]
pub(super) struct Resolver<'f> {
    files: &'f [File],
    pub(super) schema: Schema,
    structs: BTreeMap<Key, StructId>,
    pub(super) enums: BTreeMap<Key, EnumId>,
    typedefs: BTreeMap<Key, Option<Type>>,
    /// Typedefs and constants that are being resolved. Meeting one of them again is a cycle.
    open: Vec<Key>,
    mistakes: Vec<Mistake>,
    pub(super) values_left: usize,
    methods_left: usize,
}

/// Parses the IDL file `text`, called `source` in errors. `include` gets a file's text by path. Fails with all errors.
pub fn parse(source: &str, text: &str, include: ReadFile<'_>) -> Result<Schema, Mistakes> {
    let mut mistakes = Vec::new();
    let files = load(source, text, include, &mut mistakes);
    let mut resolver =
        Resolver { files: &files, mistakes, values_left: VALUES_MAX, methods_left: METHODS_MAX, ..Resolver::default() };
    // A file with syntax errors is not resolved, because follow-up errors would hide the syntax errors.
    if resolver.mistakes.is_empty() {
        resolver.declare();
        resolver.types();
        resolver.constants();
        resolver.services();
    }
    let sources = files.iter().map(|file| file.source.as_str()).collect::<Vec<_>>();
    Mistakes::or(resolver.mistakes, &sources, resolver.schema)
}

fn load(source: &str, text: &str, include: ReadFile<'_>, mistakes: &mut Vec<Mistake>) -> Vec<File> {
    if text.len() > TEXT_MAX_BYTES {
        mistakes.push(Mistake::new(source, "", 0, format!("more than {TEXT_MAX_BYTES} bytes"), None));
        return Vec::new();
    }
    let mut files = vec![File::parse(source, text.to_owned(), String::new(), mistakes)];
    let mut by_path = BTreeMap::from([(source.to_owned(), 0)]);
    let mut next = 0;
    while next < files.len() {
        for (at, path) in files[next].document.includes.clone() {
            let stem = path.rsplit(['/', '\\']).next().unwrap_or(&path);
            let stem = stem.strip_suffix(".thrift").unwrap_or(stem).to_owned();
            let index = match by_path.get(&path) {
                Some(index) => *index,
                None if files.len() > FILES_MAX => {
                    mistakes.push(files[next].mistake(at, format!("more than {FILES_MAX} included files")));
                    return files;
                }
                None => match include(&path) {
                    Ok(text) => {
                        if files.iter().map(|file| file.text.len()).sum::<usize>() + text.len() > TEXT_MAX_BYTES {
                            let limit = format!("more than {TEXT_MAX_BYTES} bytes in total with this file");
                            mistakes.push(files[next].mistake(at, limit));
                            return files;
                        }
                        by_path.insert(path.clone(), files.len());
                        files.push(File::parse(&path, text, format!("{stem}."), mistakes));
                        files.len() - 1
                    }
                    Err(why) => {
                        mistakes.push(files[next].mistake(at, format!("`{path}` cannot be included: {why}")));
                        continue;
                    }
                },
            };
            if index == 0 {
                mistakes.push(files[next].mistake(at, format!("`{path}` includes itself")));
            } else if files[next].includes.insert(stem.clone(), index).is_some_and(|other| other != index) {
                mistakes.push(files[next].mistake(at, format!("two included files are named `{stem}`")));
            }
        }
        next += 1;
    }
    if files.iter().map(|file| file.document.definitions.len()).sum::<usize>() > DEFINITIONS_MAX {
        mistakes.push(files[0].mistake(0, format!("more than {DEFINITIONS_MAX} definitions")));
    } else if let Some(index) = (1..files.len()).find(|index| includes_itself(&files, *index)) {
        // The Apache compiler also rejects circular includes.
        let at = files[index].document.includes.first().map_or(0, |include| include.0);
        mistakes.push(files[index].mistake(at, "circular include"));
    }
    files
}

fn includes_itself(files: &[File], index: usize) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![index];
    while let Some(from) = open.pop() {
        open.extend(files[from].includes.values().filter(|included| seen.insert(**included)));
    }
    seen.contains(&index)
}

fn definitions(files: &[File]) -> impl Iterator<Item = (Key, &Definition)> {
    files.iter().enumerate().flat_map(|(file, own)| {
        let definitions = own.document.definitions.iter().enumerate();
        definitions.map(move |(index, definition)| ((file, index), definition))
    })
}

impl<'f> Resolver<'f> {
    fn tell(&mut self, file: usize, at: usize, text: impl Into<String>) {
        self.mistakes.push(self.files[file].mistake(at, text));
    }

    pub(super) fn fail<T>(&mut self, file: usize, at: usize, text: impl Into<String>) -> Option<T> {
        self.tell(file, at, text);
        None
    }

    pub(super) fn fail_hint<T>(&mut self, file: usize, at: usize, text: String, hint: Option<String>) -> Option<T> {
        self.mistakes.push(Mistake { hint, ..self.files[file].mistake(at, text) });
        None
    }

    pub(super) fn definition(&self, key: Key) -> &'f Definition {
        &self.files[key.0].document.definitions[key.1]
    }

    fn full_name(&self, key: Key) -> String {
        format!("{}{}", self.files[key.0].prefix, self.definition(key).name)
    }

    /// Assigns IDs to all structs and enums, so that types may refer to each other in any order.
    fn declare(&mut self) {
        for (key, Definition { at, name, body }) in definitions(self.files) {
            if self.files[key.0].names[name] != key.1 {
                self.tell(key.0, *at, format!("`{name}` is defined twice"));
            }
            let base = BASE_TYPES.iter().map(|base| base.0);
            if base.chain(CONTAINER_TYPES).chain(["void"]).any(|built_in| built_in == name) {
                self.tell(key.0, *at, format!("`{name}` is a built-in type"));
            }
            let name = self.full_name(key);
            match body {
                Body::Struct { kind, .. } => {
                    let id = self.push_struct(name, *kind, Vec::new());
                    self.structs.insert(key, id);
                }
                Body::Enum { members } => {
                    let members = self.members(key.0, members);
                    self.enums.insert(key, EnumId(self.schema.enums.len() as u32));
                    self.schema.enums.push(Enum { name, members });
                }
                _ => {}
            }
        }
    }

    fn push_struct(&mut self, name: String, kind: StructKind, fields: Vec<Field>) -> StructId {
        self.schema.structs.push(Struct { name, kind, fields });
        StructId(self.schema.structs.len() as u32 - 1)
    }

    fn members(&mut self, file: usize, members: &[(usize, String, Option<i64>)]) -> Vec<(String, i32)> {
        let (mut read, mut next) = (Vec::<(String, i32)>::new(), 0_i64);
        for (at, name, number) in members {
            if read.iter().any(|member| member.0 == *name) {
                self.tell(file, *at, format!("duplicate `{name}` in this enum"));
            }
            let number = number.unwrap_or(next);
            next = number.saturating_add(1);
            match i32::try_from(number) {
                Ok(number) => read.push((name.clone(), number)),
                Err(_) => self.tell(file, *at, format!("`{name}` is {number}, which does not fit in an i32")),
            }
        }
        read
    }

    pub(super) fn look_up(&self, file: usize, name: &str) -> Option<Key> {
        let (file, name) = match name.split_once('.') {
            None => (file, name),
            Some((prefix, rest)) => (*self.files[file].includes.get(prefix)?, rest),
        };
        self.files[file].names.get(name).map(|index| (file, *index))
    }

    /// Resolves a type, or returns `None` after an error. Limits its size, which nested typedefs could double per line.
    fn ty(&mut self, file: usize, ty: &TypeRef) -> Option<Type> {
        let of = ty.of.iter().map(|of| self.ty(file, of)).collect::<Vec<_>>();
        let mut of = of.into_iter().collect::<Option<Vec<_>>>()?.into_iter().map(Box::new);
        let found = match ty.name.as_str() {
            "list" => Type::List(of.next()?),
            "set" => Type::Set(of.next()?),
            "map" => Type::Map(of.next()?, of.next()?),
            name => self.named_type(file, ty.at, name)?,
        };
        if size(&found) > TYPE_SIZE_MAX {
            return self.fail(file, ty.at, format!("a type made of more than {TYPE_SIZE_MAX} types"));
        }
        Some(found)
    }

    fn named_type(&mut self, file: usize, at: usize, name: &str) -> Option<Type> {
        if let Some((_, base)) = BASE_TYPES.iter().find(|base| base.0 == name) {
            return Some(base.clone());
        }
        let Some(key) = self.look_up(file, name) else {
            let names = |file: usize| self.files[file].names.keys().map(String::as_str);
            let hint = match name.split_once('.') {
                None if name == "void" => Some("`void` is only valid as a return type".to_owned()),
                None => {
                    let base = BASE_TYPES.iter().map(|base| base.0);
                    did_you_mean(name, names(file).chain(base).chain(CONTAINER_TYPES))
                }
                Some((prefix, rest)) => match self.files[file].includes.get(prefix) {
                    None => Some(format!("no included file is named `{prefix}`")),
                    Some(included) => did_you_mean(rest, names(*included)),
                },
            };
            return self.fail_hint(file, at, format!("unknown type `{name}`"), hint);
        };
        match &self.definition(key).body {
            Body::Struct { .. } => Some(Type::Struct(self.structs[&key])),
            Body::Enum { .. } => Some(Type::Enum(self.enums[&key])),
            Body::Typedef { ty } => self.typedef(key, ty),
            _ => self.fail(file, at, format!("`{name}` is not a type")),
        }
    }

    fn typedef(&mut self, key: Key, ty: &TypeRef) -> Option<Type> {
        if let Some(known) = self.typedefs.get(&key) {
            return known.clone();
        }
        let ty = self.enter(key, |resolver| resolver.ty(key.0, ty))?;
        self.typedefs.insert(key, ty.clone());
        ty
    }

    /// Resolves a typedef or constant with `resolve`. `None` if it refers to itself or exceeds [`CHAIN_MAX`].
    fn enter<T>(&mut self, key: Key, resolve: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.open.contains(&key) || self.open.len() > CHAIN_MAX {
            let Definition { at, name, .. } = self.definition(key);
            return self.fail(key.0, *at, format!("`{name}` is defined in terms of itself"));
        }
        self.open.push(key);
        let resolved = resolve(self);
        self.open.pop();
        Some(resolved)
    }

    fn types(&mut self) {
        for (key, definition) in definitions(self.files) {
            match &definition.body {
                Body::Typedef { ty } => drop(self.typedef(key, ty)),
                Body::Struct { kind, fields } => {
                    let mut read = self.fields(key.0, fields);
                    if *kind == StructKind::Union {
                        read.iter_mut().for_each(|field| field.requirement = Requirement::Optional);
                    }
                    self.schema.structs[self.structs[&key].0 as usize].fields = read;
                }
                _ => {}
            }
        }
    }

    /// Returns the fields sorted by number. Defaults are added later, as they need all types. Sets [`Field::place`].
    fn fields(&mut self, file: usize, fields: &[FieldDef]) -> Vec<Field> {
        let mut read = Vec::<Field>::new();
        let mut unnumbered = 0;
        for FieldDef { at, id: given, name, ty, requirement, .. } in fields {
            unnumbered -= i64::from(given.is_none());
            let number = given.unwrap_or(unnumbered);
            let Some(id) = i16::try_from(number).ok().filter(|id| given.is_none() || *id > 0) else {
                self.tell(file, *at, format!("`{name}` has number {number}, which must be 1 to 32767"));
                continue;
            };
            if let Some(other) = read.iter().find(|other| other.id == id) {
                self.tell(file, *at, format!("`{}` and `{name}` both have number {id}", other.name));
            } else if read.iter().any(|other| other.name == *name) {
                self.tell(file, *at, format!("duplicate `{name}`"));
            } else if let Some(ty) = self.ty(file, ty) {
                let place = read.len() as u16 + 1;
                read.push(Field { id, name: name.clone(), ty, requirement: *requirement, default: None, place });
            }
        }
        read.sort_by_key(|field| field.id);
        read
    }

    fn constants(&mut self) {
        for (key, definition) in definitions(self.files) {
            match &definition.body {
                Body::Constant { ty, .. } => drop(self.ty(key.0, ty).and_then(|ty| self.constant(key, &ty))),
                Body::Struct { fields, .. } => self.defaults(key.0, self.structs[&key], fields),
                _ => {}
            }
        }
    }

    /// Returns a constant's value, converted to `ty` if the constant has a different type. `None` after an error.
    pub(super) fn constant(&mut self, key: Key, ty: &Type) -> Option<Value> {
        let Body::Constant { value, .. } = &self.definition(key).body else { return None };
        self.enter(key, |resolver| resolver.value(key.0, value, ty))?
    }

    fn defaults(&mut self, file: usize, id: StructId, fields: &[FieldDef]) {
        for field in fields {
            let Some(default) = &field.default else { continue };
            let known = &self.schema.structure(id).fields;
            let Some(index) = known.iter().position(|other| other.name == field.name) else { continue };
            let ty = known[index].ty.clone();
            let value = self.value(file, default, &ty);
            self.schema.structs[id.0 as usize].fields[index].default = value;
        }
    }

    fn services(&mut self) {
        let mut done = BTreeMap::<Key, usize>::new();
        for (key, _) in definitions(self.files) {
            // A service is resolved after the service that it extends.
            let (mut chain, mut next) = (Vec::<(Key, Option<Key>, _)>::new(), Some(key));
            while let Some(key) = next.filter(|key| !done.contains_key(key)) {
                let Definition { at, name, body } = self.definition(key);
                let Body::Service { extends, methods } = body else { break };
                if chain.iter().any(|(other, ..)| *other == key) {
                    return self.tell(key.0, *at, format!("service `{name}` extends itself"));
                }
                next = extends.as_ref().and_then(|(at, name)| {
                    let parent = self.look_up(key.0, name);
                    let parent = parent.filter(|key| matches!(self.definition(*key).body, Body::Service { .. }));
                    parent.or_else(|| self.fail(key.0, *at, format!("unknown service `{name}`")))
                });
                chain.push((key, next, methods));
            }
            for (key, parent, methods) in chain.into_iter().rev() {
                let inherited = parent.map(|parent| self.schema.services[done[&parent]].methods.clone());
                let service = self.service(key, inherited.unwrap_or_default(), methods);
                done.insert(key, self.schema.services.len());
                self.schema.services.push(service);
            }
        }
    }

    fn service(&mut self, key: Key, inherited: Vec<Method>, methods: &[MethodDef]) -> Service {
        let (name, mut read) = (self.full_name(key), inherited);
        let all = read.len() + methods.len();
        if all > self.methods_left {
            self.tell(key.0, self.definition(key).at, format!("services with more than {METHODS_MAX} methods"));
            read.clear();
        }
        self.methods_left = self.methods_left.saturating_sub(all);
        for method in methods {
            if read.iter().any(|other| other.name == method.name) {
                self.tell(key.0, method.at, format!("duplicate method `{}`", method.name));
                continue;
            }
            if method.is_oneway && (method.returns.is_some() || !method.throws.is_empty()) {
                let text = format!("`{}` is `oneway`, so it cannot return or throw anything", method.name);
                self.fail_hint::<()>(key.0, method.at, text, Some("make it `void` without `throws`".to_owned()));
            }
            let returns = method.returns.as_ref().and_then(|ty| self.ty(key.0, ty));
            let full = format!("{name}.{}", method.name);
            let fields = self.fields(key.0, &method.arguments);
            let arguments = self.push_struct(format!("{full}.arguments"), StructKind::Struct, fields);
            self.defaults(key.0, arguments, &method.arguments);
            let fields = self.result_fields(key.0, returns.clone(), &method.throws);
            let result = self.push_struct(format!("{full}.result"), StructKind::Struct, fields);
            read.push(Method { name: method.name.clone(), is_oneway: method.is_oneway, arguments, result, returns });
        }
        Service { name, methods: read }
    }

    fn result_fields(&mut self, file: usize, returns: Option<Type>, throws: &[FieldDef]) -> Vec<Field> {
        let mut fields = self.fields(file, throws);
        for field in throws {
            let known = fields.iter().find(|other| other.name == field.name);
            let is_exception =
                |ty: &Type| matches!(ty, Type::Struct(id) if self.schema.structure(*id).kind == StructKind::Exception);
            if known.is_some_and(|known| !is_exception(&known.ty)) {
                self.tell(file, field.at, format!("`{}` is thrown but is not an exception", field.name));
            }
        }
        if let Some(ty) = returns {
            // Fields declared without a number have negative numbers and come before `success`.
            let index = fields.partition_point(|field| field.id < 0);
            let (name, requirement) = ("success".to_owned(), Requirement::Optional);
            fields.insert(index, Field { id: 0, name, ty, requirement, default: None, place: 0 });
        }
        fields.iter_mut().for_each(|field| field.requirement = Requirement::Optional);
        fields
    }
}

fn size(ty: &Type) -> usize {
    match ty {
        Type::List(element) | Type::Set(element) => 1 + size(element),
        Type::Map(key, value) => 1 + size(key) + size(value),
        _ => 1,
    }
}
