//! Tests of IDL files: the whole language, the case studies, and errors.

use codecs::thrift::{Requirement, Schema, Struct, StructKind, Type, idl};
use codecs::value::Value;

pub(crate) fn evernote() -> Schema {
    parse("evernote.thrift", include_str!("../schemas/evernote.thrift"))
}

pub(crate) fn calculator() -> Schema {
    parse("calculator.thrift", include_str!("../schemas/calculator.thrift"))
}

pub(crate) fn parse(source: &str, text: &str) -> Schema {
    match idl::parse(source, text, &mut |path| Err(format!("`{path}` was not expected"))) {
        Ok(schema) => schema,
        Err(mistakes) => panic!("{mistakes}"),
    }
}

fn struct_named<'a>(schema: &'a Schema, name: &str) -> &'a Struct {
    schema.structs().find(|(_, structure)| structure.name == name).unwrap().1
}

/// Returns the errors of `x.thrift` as `line:column text`. `files` can be included.
fn mistakes_with(text: &str, files: &[(&str, &str)]) -> Vec<String> {
    let mut include = |path: &str| match files.iter().find(|file| file.0 == path) {
        Some(file) => Ok(file.1.to_owned()),
        None => Err("no such file".to_owned()),
    };
    match idl::parse("x.thrift", text, &mut include) {
        Ok(_) => Vec::new(),
        Err(mistakes) => {
            let shown = |mistake: &codecs::mistake::Mistake| {
                let source = mistake.file.strip_prefix("x.thrift").unwrap_or(&mistake.file);
                let hint = mistake.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
                format!("{source}{}:{} {}{hint}", mistake.line, mistake.column, mistake.text)
            };
            mistakes.0.iter().map(shown).collect()
        }
    }
}

#[track_caller]
fn check(text: &str, expect: &[&str]) {
    assert_eq!(mistakes_with(text, &[]), expect, "of {text}");
}

#[test]
fn parses_the_case_study_idl_files() {
    let schema = evernote();
    let find = schema.service("NoteStore").unwrap().method("findNotes").unwrap();
    let arguments = schema.structure(find.arguments);
    let names = arguments.in_order().map(|field| (field.id, field.name.as_str())).collect::<Vec<_>>();
    assert_eq!(names, [(1, "authenticationToken"), (2, "filter"), (3, "offset"), (4, "maxNotes")]);
    let result = schema.structure(find.result);
    let shown =
        result.fields.iter().map(|field| format!("{} {} {}", field.id, field.name, schema.type_name(&field.ty)));
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            "0 success NoteList",
            "1 userException EDAMUserException",
            "2 systemException EDAMSystemException",
            "3 notFoundException EDAMNotFoundException"
        ]
    );
    let shared = schema.service("NoteStore").unwrap().method("getSharedNotebookByAuth").unwrap();
    assert_eq!(schema.structure(shared.result).field_by_id(2).unwrap().name, "notFoundException");
    let user = struct_named(&schema, "EDAMUserException");
    assert_eq!((user.kind, user.fields[0].requirement), (StructKind::Exception, Requirement::Required));
    let note = struct_named(&schema, "Note");
    assert_eq!(note.field("created").unwrap().ty, Type::I64, "typedefs are resolved");

    let schema = calculator();
    assert_eq!(schema.services.len(), 2);
    assert!(schema.service("AdderDiscovery").unwrap().method("register_adder").unwrap().returns.is_none());
}

#[test]
fn parses_the_whole_language() {
    let text = r#"
        include "base/shared.thrift"   // one
        cpp_include "<vector>"         # two
        namespace py.twisted my.own (a = "b")
        /* three */
        const i32 LIMIT = 0x10;
        const map<string, list<double>> RATES = {"a": [1, 2.5], 'b': []}
        const shared.Color PAINT = shared.Color.GREEN
        const bool ON = 1
        const string TEXT = "tab\t'quote'"
        const Point ORIGIN = {"x": LIMIT, "tag": TEXT}
        typedef list<Point> (cpp.template = "std::list") Points (deprecated)
        enum Level { LOW, HIGH = 5, HIGHER (note = "x"); TOP = -1 } (flags)
        struct Point {
            /** How far right. */
            1: required i32 x = LIMIT (min = "0", signed),
            -5: i64 wrong_is_elsewhere
            2: optional string tag
        }
        struct Values {
            1: i32 LIMIT = LIMIT, 2: shared.Color PAINT = PAINT, 3: bool ON = ON, 4: Point ORIGIN = ORIGIN
            5: map<string, list<double>> RATES = RATES
        }
        union Either { 1: required i32 left; 2: Point right }
        exception Gone { 1: shared.Color why }
        service Base extends shared.Root { void ping(), }
        service Full extends Base {
            oneway void fire(1: Level level = HIGH)
            Points all(string unnumbered, uuid other) throws (1: Gone gone) (timeout = "5")
        }
    "#
    .replace("            -5: i64 wrong_is_elsewhere\n", "");
    let shared = "enum Color { RED = 1, GREEN = 2 } service Root { i8 root(1: binary b) }";
    let mut asked = Vec::new();
    let schema = idl::parse("x.thrift", &text, &mut |path| {
        asked.push(path.to_owned());
        Ok(shared.to_owned())
    });
    let schema = schema.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert_eq!(asked, ["base/shared.thrift"]);
    let constant = |name: &str| struct_named(&schema, "Values").field(name).unwrap().default.clone().unwrap();
    assert_eq!(constant("LIMIT"), Value::Integer(16));
    assert_eq!(constant("PAINT"), Value::Integer(2));
    assert_eq!(constant("ON"), Value::Bool(true));
    assert_eq!(constant("ORIGIN"), Value::record([("x", Value::Integer(16)), ("tag", "tab\t'quote'".into())]));
    let rates = vec![
        ("a".into(), Value::List(vec![Value::Double(1.0), Value::Double(2.5)])),
        ("b".into(), Value::List(Vec::new())),
    ];
    assert_eq!(constant("RATES"), Value::Map(rates));
    let field = schema.structs().flat_map(|(_, structure)| &structure.fields).find_map(|field| match field.ty {
        Type::Enum(id) if schema.enumeration(id).name == "Level" => Some(id),
        _ => None,
    });
    let level = schema.enumeration(field.unwrap());
    let members = level.members.iter().map(|member| (member.0.as_str(), member.1)).collect::<Vec<_>>();
    assert_eq!(members, [("LOW", 0), ("HIGH", 5), ("HIGHER", 6), ("TOP", -1)]);
    let point = struct_named(&schema, "Point");
    assert_eq!(point.fields[0].default, Some(Value::Integer(16)));
    let either = struct_named(&schema, "Either");
    assert_eq!(either.fields[0].requirement, Requirement::Optional);
    let full = schema.service("Full").unwrap();
    let methods = full.methods.iter().map(|method| method.name.as_str()).collect::<Vec<_>>();
    assert_eq!(methods, ["root", "ping", "fire", "all"]);
    let fire = full.method("fire").unwrap();
    assert!(fire.is_oneway);
    assert_eq!(schema.structure(fire.arguments).fields[0].default, Some(Value::Integer(5)));
    let all = full.method("all").unwrap();
    assert_eq!(schema.type_name(all.returns.as_ref().unwrap()), "list<Point>");
    let arguments = schema.structure(all.arguments);
    let order = arguments.in_order().map(|field| (field.id, field.name.as_str())).collect::<Vec<_>>();
    assert_eq!(order, [(-1, "unnumbered"), (-2, "other")]);
    assert_eq!(schema.structure(all.result).in_order().next().unwrap().name, "success");
}

#[test]
fn reports_all_errors_at_once() {
    check(
        "struct A {\n  1: i23 a\n  2: strin b,\n  1: i32 c\n}\nservice S extends T { A get(1: B b) }",
        &[
            "2:6 unknown type `i23` (did you mean `i32`?)",
            "3:6 unknown type `strin` (did you mean `string`?)",
            "6:19 unknown service `T`",
            "6:32 unknown type `B`",
        ],
    );
    check(
        "struct A {\n  1 i32 a\n  2: i32\n  3: i32 c\n}\nenum E { A = x, B }\nstruct B { 1: i32 }",
        &[
            "2:5 expected `:`, found `i32`",
            "4:3 expected a field name, found `3`",
            "6:14 expected a number, found `x`",
            "7:19 expected a field name, found `}`",
        ],
    );
}

#[test]
fn reports_syntax_errors() {
    check(
        "struc A {}",
        &["1:1 expected `const`, `typedef`, `enum`, `struct`, `union`, `exception` or `service`, found `struc`"],
    );
    check("struct A { 1: i32 a", &["1:1 missing `}` at the end of this"]);
    check("struct A { 1: i32 a\nstruct B { 1: i32 b }", &["2:1 expected `}` before this"]);
    check("service S { void f(1: i32 a }", &["1:29 expected a type, found `}`"]);
    check("const i32 A = ", &["1:15 expected a value, found the end of the file"]);
    check("struct A.B {}", &["1:8 a struct name `A.B` contains a dot"]);
    check("\"x\"", &["1:1 expected a definition, found the string \"x\""]);
    check("struct A { 1: i32 a } }", &["1:23 expected a definition, found `}`"]);
    check("§", &["1:1 unexpected `\\u{a7}`"]);
    let deep = format!("typedef {}i32{} A", "list<".repeat(40), ">".repeat(40));
    check(&deep, &["1:174 expected a type nested at most 32 levels deep, found `list`"]);
}

#[test]
fn reports_semantic_errors() {
    check("struct A {} enum A {}", &["1:18 `A` is defined twice"]);
    check("struct i32 {}", &["1:8 `i32` is a built-in type"]);
    check("typedef B A typedef A B", &["1:11 `A` is defined in terms of itself"]);
    check(
        "const i32 A = B const i32 B = A",
        &["1:11 `A` is defined in terms of itself", "1:27 `B` is defined in terms of itself"],
    );
    check("service A extends B {} service B extends A {}", &["1:9 service `A` extends itself"]);
    check(
        "struct A { 0: i32 a, 40000: i32 b }",
        &["1:19 `a` has number 0, which must be 1 to 32767", "1:33 `b` has number 40000, which must be 1 to 32767"],
    );
    check("struct A { 1: i32 a, 2: i32 a }", &["1:29 duplicate `a`"]);
    check("struct A { 1: i32 a, 1: i32 b }", &["1:29 `a` and `b` both have number 1"]);
    check(
        "enum E { A, A, B = 4294967296 }",
        &["1:13 duplicate `A` in this enum", "1:16 `B` is 4294967296, which does not fit in an i32"],
    );
    check("const i8 A = 200", &["1:14 200 is not a valid `byte`"]);
    check("const string A = 5", &["1:18 5 is not a valid `string`"]);
    check("const uuid A = 'x'", &["1:16 \"x\" is not a valid uuid"]);
    check("enum E { ONE } const E A = E.ON", &["1:28 `E` has no member `ON` (did you mean `ONE`?)"]);
    check("enum E { ONE } const E A = 7", &["1:28 7 is not a member of `E`"]);
    check("enum E { ONE } const string A = E.ONE", &["1:33 `E.ONE` is not a `string`"]);
    check("const i32 A = NONE", &["1:15 unknown constant `NONE`"]);
    check("struct P { 1: i32 x } const P A = {'y': 1}", &["1:36 `P` has no field `y`"]);
    check(
        "struct P { 1: i32 x } service S { void f() throws (1: P p) }",
        &["1:57 `p` is thrown but is not an exception"],
    );
    check(
        "service S { oneway i32 f() }",
        &["1:24 `f` is `oneway`, so it cannot return or throw anything (make it `void` without `throws`)"],
    );
    check("service S { void f() void f() }", &["1:27 duplicate method `f`"]);
    check("service S { i32 f(1: S s) }", &["1:22 `S` is not a type"]);
    check("struct A { 1: void a }", &["1:15 unknown type `void` (`void` is only valid as a return type)"]);
    check("struct A { 1: b.C a }", &["1:15 unknown type `b.C` (no included file is named `b`)"]);
}

#[test]
fn reports_errors_in_included_files() {
    let check = |text, files: &[(&str, &str)], expect: &[&str]| assert_eq!(mistakes_with(text, files), expect);
    check("include 'a.thrift'", &[], &["1:9 `a.thrift` cannot be included: no such file"]);
    check("include 'a.thrift'", &[("a.thrift", "struct A {\n 1: x y }")], &["a.thrift2:5 unknown type `x`"]);
    check("include 'x.thrift'", &[], &["1:9 `x.thrift` includes itself"]);
    check(
        "include 'a.thrift'",
        &[("a.thrift", "include 'b.thrift'"), ("b.thrift", "include 'a.thrift'")],
        &["a.thrift1:9 circular include"],
    );
    check(
        "include 'p/a.thrift' include 'q/a.thrift'",
        &[("p/a.thrift", ""), ("q/a.thrift", "")],
        &["1:30 two included files are named `a`"],
    );
    check(
        "include 'a.thrift' struct B { 1: a.Aa a }",
        &[("a.thrift", "struct A {}")],
        &["1:34 unknown type `a.Aa` (did you mean `A`?)"],
    );
    check(
        "include 'a.thrift' include 'b.thrift' struct C { 1: b.B b }",
        &[("a.thrift", "struct A {}"), ("b.thrift", "include 'a.thrift' struct B { 1: a.A a }")],
        &[],
    );
}

#[test]
fn rejects_definitions_that_grow_exponentially() {
    let mut types = "typedef map<i32, i32> T0\n".to_owned();
    let mut values = "const list<i32> C0 = [1, 1]\n".to_owned();
    for level in 1..60 {
        let before = level - 1;
        types += &format!("typedef map<T{before}, T{before}> T{level}\n");
        values += &format!(
            "const {}i32{} C{level} = [C{before}, C{before}]\n",
            "list<".repeat(level + 1),
            ">".repeat(level + 1)
        );
        if level > 30 {
            break;
        }
    }
    assert!(mistakes_with(&types, &[])[0].contains("a type made of more than 64 types"));
    let told = mistakes_with(&values, &[]);
    assert!(told.iter().any(|text| text.contains("too many values")), "{told:?}");
    assert!(mistakes_with(&"/".repeat(idl::TEXT_MAX_BYTES + 1), &[])[0].contains("more than 4194304 bytes"));
    let many = "struct A { 1: nothing a }\n".repeat(1000);
    assert_eq!(mistakes_with(&many, &[]).len(), codecs::mistake::MISTAKES_MAX);
}
