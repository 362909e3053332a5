//! Tests the scenarios of the case study's functional suite and error cases, using encoded messages.

use super::*;

fn chess() -> Chess {
    Chess::new(8, Identities::Fresh)
}

fn call(chess: &Chess, operation: &str, arguments: &[(&str, Value)]) -> Result<Value, String> {
    let wsdl = &chess.wsdl;
    let operation = wsdl.operation(operation).unwrap();
    let arguments = Value::record(arguments.iter().cloned());
    let text = compose_envelope(wsdl, &operation.input, &arguments).unwrap();
    let request = hyper::Request::builder().method("POST").header("soapaction", format!("\"{}\"", operation.action));
    let answer = chess.answer(&request.body(text.into()).unwrap());
    let envelope = Envelope::parse(answer.body(), &Limits::DEFAULT).unwrap();
    match envelope.response(wsdl, operation).unwrap() {
        soap::Response::Returned { result, .. } => Ok(result.unwrap().to_value()),
        soap::Response::Fault(fault) => {
            Err(format!("{} {} {}", answer.status().as_u16(), fault.code_name(), fault.string))
        }
    }
}

fn begin(chess: &Chess) -> i64 {
    match call(chess, "MakeGame", &[("whiteUser", "anna".into()), ("blackUser", "ben".into())]) {
        Ok(Value::Integer(id)) => id,
        other => panic!("{other:?}"),
    }
}

fn act(chess: &Chess, user: &str, game: i64, movecount: i64, mv: &str, wishes: &[&str]) -> String {
    let flag = |name: &'static str| (name, Value::Bool(wishes.contains(&name)));
    let arguments = [
        ("username", user.into()),
        ("password", "password".into()),
        ("gameId", Value::Integer(game)),
        flag("resign"),
        flag("acceptDraw"),
        ("movecount", Value::Integer(movecount)),
        ("myMove", mv.into()),
        flag("offerDraw"),
        flag("claimDraw"),
        ("myMessage", "".into()),
    ];
    match call(chess, "MakeAMove", &arguments) {
        Ok(Value::Text(result)) => result,
        other => panic!("{other:?}"),
    }
}

/// A player's games, each as `id moves myTurn drawOffered result`.
fn list(chess: &Chess, user: &str) -> Vec<String> {
    let games = call(chess, "GetMyGames", &[("username", user.into()), ("password", "password".into())]);
    let Ok(Value::List(games)) = games else { panic!("{games:?}") };
    let word = |game: &Value, name: &str| match game.get(name) {
        Some(Value::Text(text)) => text.clone(),
        Some(Value::Integer(integer)) => integer.to_string(),
        Some(Value::Bool(flag)) => flag.to_string(),
        other => panic!("{name}: {other:?}"),
    };
    let row =
        |game: &Value| ["id", "moves", "myTurn", "drawOffered", "result"].map(|name| word(game, name)).join(" | ");
    games.iter().map(row).collect()
}

#[test]
fn a_fresh_game() {
    let chess = chess();
    let game = begin(&chess);
    assert_eq!(list(&chess, "anna"), [format!("{game} | * | true | false | Ongoing")]);
    assert_eq!(list(&chess, "ben"), [format!("{game} | * | false | false | Ongoing")]);
    assert_eq!(list(&chess, "carl"), Vec::<String>::new());
    let games = call(&chess, "GetMyGames", &[("username", "ben".into())]).unwrap();
    let Value::List(games) = games else { panic!() };
    let expected = Value::record([
        ("id", Value::Integer(game)),
        ("white", "anna".into()),
        ("black", "ben".into()),
        ("myTurn", Value::Bool(false)),
        ("hasWhite", Value::Bool(false)),
        ("daysPlayer", Value::Integer(30)),
        ("hoursPlayer", Value::Integer(0)),
        ("minutesPlayer", Value::Integer(0)),
        ("daysOpponent", Value::Integer(30)),
        ("hoursOpponent", Value::Integer(0)),
        ("minutesOpponent", Value::Integer(0)),
        ("moves", "*".into()),
        ("drawOffered", Value::Bool(false)),
        ("result", "Ongoing".into()),
        ("eventDate", "2017.05.12".into()),
    ]);
    assert_eq!(games, [expected], "event and site are left out");
}

#[test]
fn one_move() {
    let chess = chess();
    let game = begin(&chess);
    assert_eq!(act(&chess, "anna", game, 1, "e4", &[]), "Success");
    assert_eq!(list(&chess, "anna"), [format!("{game} | 1. e4 * | false | false | Ongoing")]);
    assert_eq!(list(&chess, "ben"), [format!("{game} | 1. e4 * | true | false | Ongoing")]);
}

#[test]
fn two_moves_and_more() {
    let chess = chess();
    let game = begin(&chess);
    assert_eq!(act(&chess, "anna", game, 1, "e4", &[]), "Success");
    assert_eq!(act(&chess, "ben", game, 2, "d5", &[]), "Success");
    assert_eq!(list(&chess, "anna"), [format!("{game} | 1. e4 d5 * | true | false | Ongoing")]);
    assert_eq!(act(&chess, "anna", game, 3, "exd5", &[]), "Success", "the number counts plies");
    assert_eq!(act(&chess, "ben", game, 4, "Qxd5", &[]), "Success");
    assert_eq!(list(&chess, "anna"), [format!("{game} | 1. e4 d5 2. exd5 Qxd5 * | true | false | Ongoing")]);
    assert_eq!(act(&chess, "anna", game, 5, "Nc3", &[]), "InvalidMove", "no more moves are known");
}

#[test]
fn not_your_turn() {
    let chess = chess();
    let game = begin(&chess);
    assert_eq!(act(&chess, "ben", game, 1, "e5", &[]), "NotYourTurn");
    assert_eq!(act(&chess, "anna", game, 1, "e4", &[]), "Success");
    assert_eq!(act(&chess, "anna", game, 2, "d4", &[]), "NotYourTurn");
    assert_eq!(act(&chess, "carl", game, 2, "d5", &[]), "NotYourGame");
}

#[test]
fn an_invalid_move() {
    let chess = chess();
    let game = begin(&chess);
    for mv in ["e5", "Nd2", "O-O", "", "e4 e5", "<x>", "\u{1F600}"] {
        assert_eq!(act(&chess, "anna", game, 1, mv, &[]), "InvalidMove", "{mv:?}");
    }
    assert_eq!(list(&chess, "anna"), [format!("{game} | * | true | false | Ongoing")]);
}

#[test]
fn an_invalid_game() {
    let chess = chess();
    let game = begin(&chess);
    for id in [game + 1, 0, -1, i64::MAX] {
        assert_eq!(act(&chess, "anna", id, 1, "e4", &[]), "InvalidGameID");
    }
}

#[test]
fn no_draw_was_offered() {
    let chess = chess();
    let game = begin(&chess);
    assert_eq!(act(&chess, "anna", game, 1, "e4", &[]), "Success");
    assert_eq!(act(&chess, "ben", game, 2, "", &["acceptDraw"]), "NoDrawWasOffered");
    assert_eq!(act(&chess, "ben", game, 2, "", &["claimDraw", "resign"]), "InvalidMove", "neither is served");
}

#[test]
fn a_wrong_move_number() {
    let chess = chess();
    let game = begin(&chess);
    for movecount in [0, 2, -1] {
        assert_eq!(act(&chess, "anna", game, movecount, "e4", &[]), "InvalidMoveNumber");
    }
}

#[test]
fn a_draw_is_offered_and_accepted() {
    let chess = chess();
    let game = begin(&chess);
    assert_eq!(act(&chess, "anna", game, 1, "e4", &["offerDraw"]), "Success");
    assert_eq!(list(&chess, "ben"), [format!("{game} | 1. e4 * | true | true | Ongoing")]);
    assert_eq!(act(&chess, "ben", game, 2, "", &["acceptDraw"]), "Success");
    assert_eq!(list(&chess, "ben"), [format!("{game} | 1. e4 1/2-1/2 | false | false | Draw")]);
    assert_eq!(act(&chess, "ben", game, 2, "d5", &[]), "NotYourTurn", "it is over");
}

#[test]
fn an_offer_lasts_for_one_move() {
    let chess = chess();
    let game = begin(&chess);
    assert_eq!(act(&chess, "anna", game, 1, "e4", &["offerDraw"]), "Success");
    assert_eq!(act(&chess, "ben", game, 2, "d5", &[]), "Success");
    assert_eq!(act(&chess, "anna", game, 3, "", &["acceptDraw"]), "NoDrawWasOffered");
}

#[test]
fn the_oldest_games_are_forgotten() {
    let chess = Chess::new(1, Identities::Fresh);
    let other = [("whiteUser", "anna".into()), ("blackUser", "carl".into())];
    assert_eq!((call(&chess, "MakeGame", &other), begin(&chess)), (Ok(Value::Integer(1)), 2));
    assert_eq!(act(&chess, "anna", 1, 1, "e4", &[]), "InvalidGameID");
    assert_eq!(act(&chess, "anna", 2, 1, "e4", &[]), "Success");
    assert_eq!(list(&chess, "anna"), ["2 | 1. e4 * | false | false | Ongoing"]);
    let alone = [("whiteUser", "carl".into()), ("blackUser", "carl".into())];
    assert_eq!(call(&chess, "MakeGame", &alone), Ok(Value::Integer(3)));
    assert_eq!(list(&chess, "anna"), Vec::<String>::new());
    assert_eq!(list(&chess, "carl"), ["3 | * | true | false | Ongoing"], "once, though both sides are his");
    assert_eq!(begin(&chess), 4);
    assert_eq!(list(&chess, "carl"), Vec::<String>::new());
    assert_eq!(chess.games().ids.len(), 2, "players without a game are forgotten");
}

#[test]
fn the_same_players_have_one_game() {
    let chess = chess();
    let other = [("whiteUser", "ben".into()), ("blackUser", "anna".into())];
    assert_eq!((begin(&chess), call(&chess, "MakeGame", &other), begin(&chess)), (1, Ok(Value::Integer(2)), 3));
    assert_eq!(list(&chess, "anna"), [2, 3].map(|id| format!("{id} | * | {} | false | Ongoing", id == 3)));
    assert_eq!(act(&chess, "anna", 1, 1, "e4", &[]), "InvalidGameID");
}

#[test]
fn invalid_input_returns_faults() {
    let chess = chess();
    assert_eq!(
        call(&chess, "MakeGame", &[("whiteUser", "anna".into())]).unwrap_err(),
        "500 Client `blackUser` has 0 bytes, expected 1 to 256"
    );
    assert_eq!(call(&chess, "MakeAMove", &[]).unwrap_err(), "500 Client missing `gameId`");
    let answer = |method: &str, target: &str, body: &str| {
        let request = hyper::Request::builder().method(method).uri(target).header("host", "a:1");
        let answer = chess.answer(&request.body(body.to_owned().into()).unwrap());
        (answer.status().as_u16(), String::from_utf8(answer.into_body().into()).unwrap())
    };
    let body = |inner: &str| {
        format!(
            "<e:Envelope xmlns:e=\"http://schemas.xmlsoap.org/soap/envelope/\"><e:Body>{inner}</e:Body></e:Envelope>"
        )
    };
    let space = "xmlns=\"http://www.bennedik.com/webservices/XfccBasic\"";
    for (text, why) in [
        (String::new(), ""),
        ("no xml".to_owned(), ""),
        ("<!DOCTYPE x [<!ENTITY a \"b\">]><x/>".to_owned(), ""),
        (body(""), "0 elements in the body"),
        (body("<Other/>"), "no operation has element `Other`"),
        (body(&format!("<MakeAMove {space}><gameId>x</gameId></MakeAMove>")), "`gameId` is not an integer"),
        (
            body(&format!("<MakeAMove {space}><gameId>1</gameId><offerDraw>maybe</offerDraw></MakeAMove>")),
            "`offerDraw` is neither",
        ),
        ("<a>".repeat(100_000), ""),
    ] {
        let (status, said) = answer("POST", "/", &text);
        assert!(status == 500 && said.contains("soap:Client") && said.contains(why), "{status} {said}");
    }
    assert_eq!(answer("POST", "/other", "").0, 404);
    assert_eq!(answer("DELETE", "/", "").0, 405);
    let (status, wsdl) = answer("GET", "/?wsdl", "");
    assert!(status == 200 && wsdl.contains("location=\"http://a:1/\""));
}

#[test]
fn reused_identities_keep_the_number_of_a_game() {
    let make = |chess: &Chess, white: &str| {
        call(chess, "MakeGame", &[("whiteUser", white.into()), ("blackUser", "ben".into())]).unwrap()
    };
    for (identities, expected) in [(Identities::Fresh, [1, 2, 3, 4]), (Identities::Reused, [1, 2, 1, 3])] {
        let chess = Chess::new(8, identities);
        let got = ["anna", "carl", "anna", "dora"].map(|white| make(&chess, white));
        assert_eq!(got, expected.map(Value::Integer));
        let anna = expected[2];
        assert_eq!(act(&chess, "anna", anna, 1, "e4", &[]), "Success");
        assert_eq!(act(&chess, "anna", anna, 2, "d5", &[]), "NotYourTurn");
        make(&chess, "anna");
        let again = if identities == Identities::Reused { anna } else { 5 };
        assert_eq!(act(&chess, "anna", again, 1, "e4", &[]), "Success");
    }
}
