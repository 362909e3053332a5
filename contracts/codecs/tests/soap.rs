//! Tests SOAP and WSDL against zeep's envelopes and tables of invalid input.

use codecs::mistake::Mistakes;
use codecs::soap::{Builtin, Envelope, Limits, Response, Type, Wsdl, compose_envelope, compose_fault, wsdl};
use codecs::value::Value;

pub(crate) fn chess() -> Wsdl {
    parse("chess.wsdl", include_str!("../schemas/chess.wsdl"))
}

pub(crate) fn airline() -> Wsdl {
    parse("airline.wsdl", include_str!("../schemas/airline.wsdl"))
}

fn parse(source: &str, text: &str) -> Wsdl {
    match wsdl::parse(source, text, &mut |location| Err(format!("`{location}` was not expected"))) {
        Ok(wsdl) => wsdl,
        Err(mistakes) => panic!("{mistakes}"),
    }
}

#[test]
fn parses_the_case_study_wsdl_files() {
    let chess = chess();
    let names = chess.operations().map(|operation| operation.name.as_str()).collect::<Vec<_>>();
    assert_eq!(names, ["GetMyGames", "MakeAMove", "MakeGame"]);
    let make = chess.operation("MakeAMove").unwrap();
    assert_eq!(make.action, "http://www.bennedik.com/webservices/XfccBasic/MakeAMove");
    assert_eq!(chess.complex(make.input.content).fields.len(), 10);
    let games = chess.complex(chess.operation("GetMyGames").unwrap().output.as_ref().unwrap().content);
    let Type::Complex(list) = games.fields[0].ty else { panic!("{:?}", games.fields[0]) };
    let game = chess.complex(list).array().expect("it is a list of games");
    assert!(game.is_list() && game.is_nillable);
    let Type::Complex(game) = game.ty else { panic!("{game:?}") };
    let game = chess.complex(game);
    assert_eq!((game.fields.len(), game.fields[13].name.as_str()), (17, "moves"));
    let Type::Simple(base, Some(result)) = game.field("result").unwrap().ty else { panic!("an enumeration") };
    assert_eq!((base, chess.enumeration(result).values.len()), (Builtin::Text, 6));

    let airline = airline();
    assert_eq!(airline.operations().count(), 4);
    let book = airline.complex(airline.operation("bookSeat").unwrap().input.content);
    let Type::Complex(passenger) = book.fields[3].ty else { panic!("{:?}", book.fields[3]) };
    assert_eq!(airline.complex(passenger).fields[0].namespace, "http://soa.cs.uwf.edu/airlineData");
    assert_eq!(airline.complex(airline.operation("resetBackend").unwrap().input.content).fields.len(), 0);
}

/// Operations and request envelopes from `oracle/soap_messages.py`.
fn requests_of_zeep() -> Vec<(&'static str, &'static str)> {
    include_str!("oracle/soap_requests.txt").lines().map(|line| line.split_once('\t').unwrap()).collect()
}

#[test]
fn zeep_requests_survive_a_round_trip() {
    let (chess, airline) = (chess(), airline());
    let mut values = std::collections::BTreeMap::new();
    for (name, text) in requests_of_zeep() {
        let envelope = Envelope::parse(text.as_bytes(), &Limits::DEFAULT).unwrap();
        let wsdl = if chess.operation(name).is_some() { &chess } else { &airline };
        let request = envelope.request(wsdl, Some(&format!("\"{}\"", wsdl.operation(name).unwrap().action))).unwrap();
        assert_eq!((request.operation.name.as_str(), request.is_action_other), (name, false));
        let value = request.arguments.to_value();
        let again = compose_envelope(wsdl, &request.operation.input, &value).unwrap();
        let envelope = Envelope::parse(again.as_bytes(), &Limits::DEFAULT).unwrap();
        assert_eq!(envelope.request(wsdl, None).unwrap().arguments.to_value(), value, "{again}");
        values.insert(name, value);
    }
    let players = Value::record([("whiteUser", "anna <a&b>".into()), ("blackUser", "Łucja \"x\"".into())]);
    assert_eq!(values["MakeGame"], players);
    let made = &values["MakeAMove"];
    assert_eq!(made.get("gameId"), Some(&Value::Integer(17)));
    assert_eq!((made.get("offerDraw"), made.get("resign")), (Some(&Value::Bool(true)), Some(&Value::Bool(false))));
    assert!(matches!(made.get("myMessage"), None | Some(Value::Null)));
    let booked = &values["bookSeat"];
    assert_eq!(booked.get("bookingRequestNumber"), Some(&Value::Integer(-2147483648)));
    assert_eq!(booked.get("passenger").unwrap().get("dateOfBirth"), Some(&"1970-01-02".into()));
    assert_eq!(values["findSeats"].get("earliestDepartTime"), Some(&"2026-01-02T03:04:05Z".into()), "a time is a text");
}

fn game(id: i64, moves: &str) -> Value {
    Value::record([
        ("id", Value::Integer(id)),
        ("white", "anna".into()),
        ("myTurn", Value::Bool(true)),
        ("daysPlayer", Value::Integer(30)),
        ("moves", moves.into()),
        ("drawOffered", Value::Bool(false)),
        ("result", "Ongoing".into()),
        ("eventDate", "2026.11.22".into()),
    ])
}

fn responses() -> Vec<(&'static str, Value)> {
    let flight = |id: &str| {
        Value::record([
            ("flightId", id.into()),
            ("departAirport", "MIA".into()),
            ("arriveAirport", "TPA".into()),
            ("departTime", "2026-01-02T03:04:05Z".into()),
            ("arriveTime", "2026-01-02T04:04:05Z".into()),
            ("flightSeatsAvailable", Value::Integer(3)),
            ("flightSeatPriceUSD", "99.50".into()),
        ])
    };
    vec![
        (
            "GetMyGames",
            Value::record([("GetMyGamesResult", Value::List(vec![game(1, "*"), game(2, "1. e4 <d5> & *")]))]),
        ),
        ("GetMyGames", Value::record([("GetMyGamesResult", Value::List(Vec::new()))])),
        ("MakeAMove", Value::record([("MakeAMoveResult", "NoDrawWasOffered".into())])),
        ("MakeGame", Value::record([("MakeGameResult", Value::Integer(17))])),
        ("findSeats", Value::record([("return", Value::List(vec![flight("F1"), flight("F2")]))])),
        ("resetBackend", Value::record([("return", Value::Bool(true))])),
    ]
}

#[test]
fn composes_the_responses_that_zeep_decoded() {
    let (chess, airline) = (chess(), airline());
    let mut lines = String::new();
    for (name, value) in responses() {
        let wsdl = if chess.operation(name).is_some() { &chess } else { &airline };
        let operation = wsdl.operation(name).unwrap();
        let text = compose_envelope(wsdl, operation.output.as_ref().unwrap(), &value).unwrap();
        lines += &format!("{name}\t{text}\n");
        let envelope = Envelope::parse(text.as_bytes(), &Limits::DEFAULT).unwrap();
        let Ok(Response::Returned { all, result }) = envelope.response(wsdl, operation) else { panic!("{text}") };
        assert_eq!(all.to_value(), value);
        let result = result.expect("every call has a result");
        match name {
            "GetMyGames" if result.elements().count() == 2 => {
                let second = result.elements().nth(1).unwrap();
                assert_eq!(second.get("moves").unwrap().as_str(), Some("1. e4 <d5> & *"));
                assert_eq!((second.get("id").unwrap().as_i64(), second.at(0).unwrap().as_i64()), (Some(2), Some(2)));
                assert_eq!(second.get("myTurn").unwrap().as_bool(), Some(true));
                assert!(second.get("event").is_none() && second.get("moves").unwrap().as_i64().is_none());
                assert_eq!(result.elements().count(), 2);
            }
            "GetMyGames" => assert!(result.is_list() && result.elements().count() == 0),
            "MakeAMove" => assert!(result.as_str() == Some("NoDrawWasOffered")),
            _ => {}
        }
    }
    let fault = compose_fault("Client", "no such <game>");
    let fault = fault.replace("</soap:Fault>", "<detail><message>17</message></detail></soap:Fault>");
    lines += &format!("MakeAMove\t{fault}\n");
    assert_eq!(lines, include_str!("oracle/soap_responses.txt"));
    let read = include_str!("oracle/soap_responses_read.txt").lines().collect::<Vec<_>>();
    assert_eq!(read.len(), 7);
    assert_eq!(read[2], "MakeAMove \"NoDrawWasOffered\"");
    assert_eq!(read[3], "MakeGame 17");
    assert_eq!(read[5], "resetBackend true");
    assert_eq!(read[6], "MakeAMove fault soap:Client no such <game>");

    let envelope = Envelope::parse(fault.as_bytes(), &Limits::DEFAULT).unwrap();
    let Ok(Response::Fault(fault)) = envelope.response(&chess, chess.operation("MakeAMove").unwrap()) else { panic!() };
    assert_eq!((fault.code_name(), fault.string), ("Client", "no such <game>"));
    assert_eq!(fault.detail.unwrap().get("message").unwrap().as_str(), Some("17"));
}

#[test]
fn operations_are_found_by_every_spelling_of_the_action() {
    let chess = chess();
    let namespace = &chess.operation("MakeGame").unwrap().input.namespace;
    for action in ["MakeGame", "\"MakeGame\"", &format!("{namespace}/MakeGame"), &format!("\"{namespace}/MakeGame\"")] {
        assert_eq!(chess.operation_by_action(action).map(|found| found.name.as_str()), Some("MakeGame"), "{action}");
    }
    for action in ["", "\"\"", "Make", &format!("{namespace}/"), namespace] {
        assert!(chess.operation_by_action(action).is_none(), "{action}");
    }
    let (_, text) = requests_of_zeep()[1];
    let envelope = Envelope::parse(text.as_bytes(), &Limits::DEFAULT).unwrap();
    let other = |action| envelope.request(&chess, action).unwrap().is_action_other;
    assert!(other(Some("GetMyGames")) && other(Some("nothing")));
    assert!(!other(None) && !other(Some("\"\"")) && !other(Some("MakeGame")));
}

fn in_body(body: &str) -> String {
    format!("<s:Envelope xmlns:s=\"{}\"><s:Body>{body}</s:Body></s:Envelope>", codecs::soap::SOAP_11)
}

#[track_caller]
fn refused(text: &str, expect: &str) {
    let limits = Limits { document_bytes: 4000, depth: 6, elements: 8, attributes: 3, text_bytes: 80 };
    let found = Envelope::parse(text.as_bytes(), &limits).map(|envelope| envelope.content().1.to_owned());
    let found = found.map_err(|error| error.to_string());
    assert!(found.as_ref().is_err_and(|error| error.contains(expect)), "{expect:?} expected of {text}: {found:?}");
}

#[test]
fn rejects_invalid_envelopes() {
    let bomb = "<!DOCTYPE b [<!ENTITY a \"x\"><!ENTITY b \"&a;&a;&a;\">]>";
    refused(&format!("{bomb}{}", in_body("<x>&b;</x>")), "a document type declaration, which SOAP forbids");
    refused(&in_body("<x>&b;</x>"), "unknown entity `b`");
    refused(&in_body("<x>&#0;</x>"), "is not a valid character");
    refused(&in_body("<x>\u{1}</x>"), "U+0001");
    refused(&in_body("<x><y></x></y>"), "expected `</y>`");
    refused(&in_body("<x a='1' a='2'/>"), "duplicate");
    refused(&in_body("<p:x/>"), "undeclared prefix in `p:x`");
    refused(&in_body("<x/><y/>"), "2 elements in the body");
    refused(&in_body(""), "0 elements in the body");
    refused("<s:Envelope xmlns:s=\"http://www.w3.org/2003/05/soap-envelope\"/>", "SOAP 1.2");
    refused("<Envelope/>", "the root is `Envelope`");
    refused(&format!("<s:Envelope xmlns:s=\"{}\"/>", codecs::soap::SOAP_11), "0 bodies");
    refused("", "the document ends too early");
    refused("<a>", "the document ends too early");
    refused("<a/><b/>", "a second root element");
    refused("x<a/>", "text outside the root");
    refused("<?xml version=\"1.0\" encoding=\"iso-8859-1\"?><a/>", "unsupported encoding");
    refused(&in_body(&"<x>".repeat(5)), "elements nested deeper than 6 levels");
    refused(&in_body(&format!("<x>{}</x>", "<y/>".repeat(6))), "more than 8 elements");
    refused(&in_body("<x a='' b='' c='' d=''/>"), "more than 3 attributes");
    refused(&in_body(&format!("<x>{}</x>", "z".repeat(81))), "81 bytes, over the limit of 80");
    refused(&in_body(&format!("<x>{}</x>", "&lt;".repeat(81))), "81 bytes, over the limit of 80");
    refused(&in_body(&" ".repeat(4001)), "over the limit of 4000");
    let error = Envelope::parse(b"<a>\xff</a>", &Limits::DEFAULT).err().unwrap().to_string();
    assert_eq!(error, "at byte 3: the text is not valid UTF-8");
    let unknown = in_body("<x xmlns='urn:y'/>");
    let envelope = Envelope::parse(unknown.as_bytes(), &Limits::DEFAULT).unwrap();
    let said = envelope.request(&chess(), None).err().unwrap().to_string();
    assert_eq!(said, "at byte 72: no operation has element `x` in namespace `urn:y`");
    let chess = chess();
    let other = envelope.response(&chess, chess.operation("MakeGame").unwrap()).err().unwrap().to_string();
    assert_eq!(other, "at byte 72: expected `MakeGameResponse` in the body, found `x`");
}

#[test]
fn rejects_truncated_envelopes() {
    for (_, text) in requests_of_zeep() {
        for end in 0..text.len() {
            assert!(Envelope::parse(&text.as_bytes()[..end], &Limits::DEFAULT).is_err(), "up to {end}");
        }
    }
}

#[test]
fn reads_all_forms_of_xml_text() {
    let chess = chess();
    let namespace = &chess.operation("MakeGame").unwrap().input.namespace;
    let text = format!(
        "\u{feff}<?xml version='1.0'?><!-- c --><e:Envelope xmlns:e='{}' xmlns:i='http://www.w3.org/2001/XMLSchema-instance'>\
         <e:Header><x xmlns=''/></e:Header><e:Body><m:MakeAMove xmlns:m='{namespace}'>\
         <m:gameId> +17\n</m:gameId><m:resign> 1 </m:resign><m:username>a&amp;b<![CDATA[<c>]]>&#x142;\r\n</m:username>\
         <m:password i:nil='true'/><m:movecount>x</m:movecount><other>5</other><m:unknown/></m:MakeAMove></e:Body></e:Envelope>",
        codecs::soap::SOAP_11
    );
    let envelope = Envelope::parse(text.as_bytes(), &Limits::DEFAULT).unwrap();
    let arguments = envelope.request(&chess, None).unwrap().arguments;
    assert_eq!(arguments.get("gameId").unwrap().as_i64(), Some(17));
    assert_eq!(arguments.get("resign").unwrap().as_bool(), Some(true));
    assert_eq!(arguments.get("username").unwrap().as_str(), Some("a&b<c>ł\n"));
    assert_eq!(arguments.at(0).unwrap().text(), Some("a&b<c>ł\n"));
    assert!(arguments.get("password").unwrap().is_nil() && arguments.get("password").unwrap().as_str().is_none());
    assert_eq!(arguments.get("movecount").unwrap().as_i64(), None, "it is not an integer");
    assert_eq!(arguments.get("movecount").unwrap().to_value(), "x".into());
    assert!(arguments.get("other").is_none(), "the type has no such field");
    assert!(arguments.get("myMove").is_none(), "it is not there");
    assert_eq!(arguments.fields().count(), 5);
}

fn mistakes(text: &str) -> Vec<String> {
    match wsdl::parse("x.wsdl", text, &mut |location| Err(format!("{location} is not there"))) {
        Ok(_) => Vec::new(),
        Err(Mistakes(mistakes)) => {
            mistakes.iter().map(|found| format!("{}:{} {}", found.line, found.column, found.text)).collect()
        }
    }
}

#[test]
fn reports_all_wsdl_errors_at_once() {
    let chess = include_str!("../schemas/chess.wsdl");
    assert_eq!(mistakes(chess), Vec::<String>::new());
    let broken = chess
        .replace("type=\"xs:boolean\"", "type=\"xs:bolean\"")
        .replace("element=\"tns:MakeGame\"", "element=\"tns:MakeGam\"")
        .replace("message=\"tns:GetMyGames\"", "message=\"foo:GetMyGames\"");
    let told = mistakes(&broken);
    let count = |what: &str| told.iter().filter(|text| text.contains(what)).count();
    assert!(count("unsupported XML Schema type `bolean`") >= 3, "{told:?}");
    assert_eq!(count("no element `MakeGam`"), 1);
    assert_eq!(count("undeclared prefix in `foo:GetMyGames`"), 1);

    let check = |from: &str, to: &str, expect: &str| {
        assert!(chess.contains(from), "{from}");
        let told = mistakes(&chess.replacen(from, to, 1));
        assert!(told.iter().any(|text| text.contains(expect)), "{expect:?} expected: {told:?}");
    };
    check("use=\"literal\"", "use=\"encoded\"", "is `encoded`; only `literal`");
    check(
        "soapAction=\"http://www.bennedik.com/webservices/XfccBasic/MakeGame\" style=\"document\"",
        "style=\"rpc\"",
        "is `rpc`",
    );
    check("binding=\"tns:ChessSoap\"", "binding=\"tns:Chess\"", "no binding `Chess`");
    check("type=\"tns:XfccGame\"", "type=\"tns:XfccGam\"", "no type `XfccGam`");
    check("maxOccurs=\"unbounded\"", "maxOccurs=\"many\"", "`maxOccurs` is \"many\"");
    check("minOccurs=\"0\" maxOccurs=\"unbounded\"", "minOccurs=\"3\" maxOccurs=\"2\"", "`maxOccurs` is less than");
    check("<xs:restriction base=\"xs:string\">", "<xs:restriction base=\"tns:XfccGame\">", "is not a simple type");
    check("<xs:sequence>", "<xs:group ref=\"x\"/><xs:sequence>", "`group` in a complex type is not supported");
    check("<wsdl:types>", "<wsdl:import location=\"y.wsdl\"/><wsdl:types>", "`y.wsdl` cannot be imported");
    check("<wsdl:types>", "<!DOCTYPE x><wsdl:types>", "a document type declaration, which SOAP forbids");
    check("</wsdl:definitions>", "", "the document ends too early");
    check("<soap:address", "<other xmlns=\"urn:x\"", "no SOAP 1.1 operation found");
    assert_eq!(mistakes("<a/>"), ["1:1 `a` is neither a WSDL nor a schema",]);
    assert!(mistakes("").iter().any(|text| text.contains("ends too early")));
}

#[test]
fn resolves_imports_and_extended_types() {
    let main = r#"<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:t="urn:t" targetNamespace="urn:t" xmlns:b="urn:b">
        <import namespace="urn:b" location="b.wsdl"/>
        <service name="S"><port name="P" binding="b:B"><s:address xmlns:s="http://schemas.xmlsoap.org/wsdl/soap/" location="http://h/"/></port>
        <port name="Twelve" binding="b:B"><s:address xmlns:s="http://schemas.xmlsoap.org/wsdl/soap12/" location="http://h/"/></port></service>
        </definitions>"#;
    let bindings = r#"<w:definitions xmlns:w="http://schemas.xmlsoap.org/wsdl/" xmlns:b="urn:b" xmlns:s="http://schemas.xmlsoap.org/wsdl/soap/" targetNamespace="urn:b" xmlns:x="urn:x">
        <w:types><schema xmlns="http://www.w3.org/2001/XMLSchema"><import namespace="urn:x" schemaLocation="x.xsd"/></schema></w:types>
        <w:message name="m"><w:part name="p" element="x:ask"/></w:message>
        <w:portType name="T"><w:operation name="ask"><w:input message="b:m"/></w:operation></w:portType>
        <w:binding name="B" type="b:T"><s:binding/><w:operation name="ask"><s:operation soapAction=""/></w:operation></w:binding>
        </w:definitions>"#;
    let types = r#"<schema xmlns="http://www.w3.org/2001/XMLSchema" xmlns:x="urn:x" targetNamespace="urn:x">
        <element name="ask" type="x:Derived"/><element name="global" type="int" nillable="true"/>
        <complexType name="Base"><sequence><element name="first" type="unsignedByte"/></sequence><attribute name="kind" type="string" use="required"/></complexType>
        <complexType name="Derived"><complexContent><extension base="x:Base"><sequence>
            <element name="self" type="x:Derived" minOccurs="0"/><element ref="x:global"/>
            <choice><element name="left" type="base64Binary"/><element name="right" type="hexBinary"/></choice>
            <element name="ratio" type="double" form="qualified"/><element name="free" minOccurs="0"/><any/>
        </sequence></extension></complexContent></complexType></schema>"#;
    let mut asked = Vec::new();
    let wsdl = wsdl::parse("main.wsdl", main, &mut |location| {
        asked.push(location.to_owned());
        Ok(if location == "b.wsdl" { bindings.to_owned() } else { types.to_owned() })
    });
    let wsdl = wsdl.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert_eq!(asked, ["b.wsdl", "x.xsd"]);
    assert_eq!(wsdl.services[0].operations.len(), 1, "SOAP 1.2 is left out");
    let ask = wsdl.operation("ask").unwrap();
    assert!(ask.output.is_none());
    let fields =
        wsdl.complex(ask.input.content).fields.iter().map(|field| (field.name.as_str(), field.namespace.as_str()));
    let expect = [
        ("first", ""),
        ("self", ""),
        ("global", "urn:x"),
        ("left", ""),
        ("right", ""),
        ("ratio", "urn:x"),
        ("free", ""),
        ("kind", ""),
    ];
    assert_eq!(fields.collect::<Vec<_>>(), expect);
    let value = Value::record([
        ("kind", "a\"b".into()),
        ("first", Value::Integer(255)),
        ("global", Value::Null),
        ("left", Value::Bytes(b"\0\xff".to_vec())),
        ("ratio", Value::Double(-0.5)),
        ("free", "x".into()),
    ]);
    let text = compose_envelope(&wsdl, &ask.input, &value).unwrap();
    let envelope = Envelope::parse(text.as_bytes(), &Limits::DEFAULT).unwrap();
    let arguments = envelope.request(&wsdl, None).unwrap().arguments;
    assert_eq!(arguments.get("kind").unwrap().as_str(), Some("a\"b"));
    assert_eq!(arguments.get("left").unwrap().as_bytes(), Some(b"\0\xff".to_vec()));
    assert_eq!(arguments.get("ratio").unwrap().as_f64(), Some(-0.5));
    assert!(arguments.get("global").unwrap().is_nil(), "{text}");
    let refuse = |name: &str, value: Value, expect: &str| {
        let mut all = vec![("kind", "k".into()), ("first", Value::Integer(1)), ("ratio", Value::Integer(1))];
        all.retain(|field| field.0 != name);
        all.push((name, value));
        let refused = compose_envelope(&wsdl, &ask.input, &Value::record(all)).unwrap_err();
        assert_eq!(refused.to_string(), expect);
    };
    refuse("first", Value::Integer(256), "ask.first: 256 is out of range for its type");
    refuse("first", Value::Null, "ask.first: expected integer, found null");
    refuse("ratio", "x".into(), "ask.ratio: expected double, found text");
    refuse("kind", Value::Null, "ask: the attribute `kind` is missing");
    refuse("nothing", Value::Null, "ask: `Derived` has no field `nothing`");
}
