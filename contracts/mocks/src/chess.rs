//! A mock of the chess service: games over SOAP.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use codecs::built_in_schemas::CHESS_WSDL;
use codecs::soap::{self, Envelope, Limits, Request, View, Wsdl, compose_envelope, compose_fault};
use codecs::value::Value;

use super::{Identities, MockAnswer, MockRequest, Service, respond, respond_only, respond_text};

/// The scripted game: the first moves of the case study. Any other move fails with `InvalidMove`.
const MOVES: [&str; 4] = ["e4", "d5", "exd5", "Qxd5"];
/// Days per move; the mock does not count them down.
const DAYS: i64 = 30;
const BEGUN: &str = "2017.05.12";
const NAME_BYTES_MAX: usize = 256;
const XML: &str = "text/xml; charset=utf-8";

const LIMITS: Limits =
    Limits { document_bytes: 1 << 20, depth: 32, elements: 4096, attributes: 32, text_bytes: 64 << 10 };

/// A mock of the chess service. It keeps the most recent games, numbered from 1.
#[derive(Debug)]
pub struct Chess {
    wsdl: Wsdl,
    games: Mutex<Games>,
    games_max: usize,
    identities: Identities,
}

#[derive(Debug, Clone)]
struct Game {
    id: i64,
    white: String,
    black: String,
    plies: usize,
    /// Whether the side to move has been offered a draw.
    draw_offered: bool,
    is_drawn: bool,
}

impl Game {
    /// The names of the players, or one name if a user plays against themselves.
    fn players(&self) -> impl Iterator<Item = &str> {
        let black = Some(self.black.as_str()).filter(|black| *black != self.white);
        [self.white.as_str()].into_iter().chain(black)
    }

    fn is_turn(&self, name: &str) -> bool {
        let mover = if self.plies.is_multiple_of(2) { &self.white } else { &self.black };
        !self.is_drawn && mover == name
    }

    /// The moves and the result in PGN, such as `1. e4 d5 *`.
    fn movetext(&self) -> String {
        let moves = MOVES.iter().take(self.plies).enumerate().map(|(ply, played)| match ply % 2 {
            0 => format!("{}. {played} ", ply / 2 + 1),
            _ => format!("{played} "),
        });
        moves.collect::<String>() + if self.is_drawn { "1/2-1/2" } else { "*" }
    }

    /// Accepts a draw or makes a move. Fails with the `MakeAMoveResult` to return.
    fn play(&mut self, user: &str, request: &MoveRequest) -> Result<(), &'static str> {
        match () {
            () if self.players().all(|player| player != user) => Err("NotYourGame"),
            () if !self.is_turn(user) => Err("NotYourTurn"),
            () if request.accepts_draw && !self.draw_offered => Err("NoDrawWasOffered"),
            () if request.accepts_draw => {
                (self.is_drawn, self.draw_offered) = (true, false);
                Ok(())
            }
            () if request.movecount != self.plies as i64 + 1 => Err("InvalidMoveNumber"),
            () if MOVES.get(self.plies) != Some(&request.played.as_str()) => Err("InvalidMove"),
            () => {
                self.plies += 1;
                self.draw_offered = request.offers_draw;
                Ok(())
            }
        }
    }
}

struct MoveRequest {
    accepts_draw: bool,
    /// Number of the ply (half-move), from 1.
    movecount: i64,
    played: String,
    offers_draw: bool,
}

/// Games indexed by number and player, so that the time per call does not depend on their count.
#[derive(Debug, Default)]
struct Games {
    last_id: i64,
    all: BTreeMap<i64, Game>,
    /// Each player with the number of each of their games.
    ids: BTreeSet<(String, i64)>,
}

impl Games {
    /// Starts a game and returns its number. Removes an earlier game of the two players, so that loads can be repeated.
    fn begin_game(&mut self, white: String, black: String, games_max: usize, identities: Identities) -> i64 {
        let is_same = |other: &&Game| (&other.white, &other.black) == (&white, &black);
        let earlier = self.of_player(&white).find(is_same).map(|other| other.id);
        earlier.into_iter().for_each(|id| self.forget(id));
        let id = earlier.filter(|_| identities == Identities::Reused).unwrap_or(self.last_id + 1);
        self.last_id = self.last_id.max(id);
        let game = Game { id, white, black, plies: 0, draw_offered: false, is_drawn: false };
        self.ids.extend(game.players().map(|player| (player.to_owned(), id)));
        self.all.insert(id, game);
        let oldest = self.all.first_key_value().map(|(id, _)| *id);
        if let Some(oldest) = oldest.filter(|_| self.all.len() > games_max) {
            self.forget(oldest);
        }
        id
    }

    fn forget(&mut self, id: i64) {
        for player in self.all.remove(&id).iter().flat_map(Game::players) {
            self.ids.remove(&(player.to_owned(), id));
        }
    }

    fn of_player(&self, player: &str) -> impl Iterator<Item = &Game> {
        let ids = self.ids.range((player.to_owned(), i64::MIN)..=(player.to_owned(), i64::MAX));
        ids.filter_map(|(_, id)| self.all.get(id))
    }
}

impl Chess {
    /// Creates a mock that keeps up to `games_max` games and removes the oldest first; the case study's mock keeps one.
    /// With reused identities, a new game of the same players keeps its number.
    pub fn new(games_max: usize, identities: Identities) -> Chess {
        let read = soap::wsdl::parse("chess.wsdl", CHESS_WSDL, &mut |_| Err("includes are not needed".to_owned()));
        let wsdl = read.expect("covered by a test");
        Chess { wsdl, games: Mutex::default(), games_max: games_max.max(1), identities }
    }

    fn games(&self) -> MutexGuard<'_, Games> {
        self.games.lock().unwrap_or_else(PoisonError::into_inner) // A panic leaves no game half changed.
    }

    fn call(&self, request: &Request<'_>) -> Result<Value, String> {
        let arguments = Arguments(request.arguments);
        match request.operation.name.as_str() {
            "MakeGame" => {
                let (white, black) = (arguments.name("whiteUser")?, arguments.name("blackUser")?);
                Ok(Value::Integer(self.games().begin_game(white, black, self.games_max, self.identities)))
            }
            "GetMyGames" => Ok(self.list(&arguments.text("username")?)),
            "MakeAMove" => {
                let id = arguments.integer("gameId")?.ok_or("missing `gameId`")?;
                let request = MoveRequest {
                    accepts_draw: arguments.flag("acceptDraw")?,
                    movecount: arguments.integer("movecount")?.unwrap_or(0),
                    played: arguments.text("myMove")?,
                    offers_draw: arguments.flag("offerDraw")?,
                };
                let user = arguments.text("username")?;
                let mut games = self.games();
                let result = games.all.get_mut(&id).ok_or("InvalidGameID").and_then(|game| game.play(&user, &request));
                Ok(Value::from(result.err().unwrap_or("Success")))
            }
            other => Err(format!("`{other}` is not served")),
        }
    }

    fn list(&self, user: &str) -> Value {
        let games = self.games();
        let row = |game: &Game| {
            Value::record([
                ("id", Value::Integer(game.id)),
                ("white", game.white.as_str().into()),
                ("black", game.black.as_str().into()),
                ("myTurn", Value::Bool(game.is_turn(user))),
                ("hasWhite", Value::Bool(game.white == user)),
                ("daysPlayer", Value::Integer(DAYS)),
                ("hoursPlayer", Value::Integer(0)),
                ("minutesPlayer", Value::Integer(0)),
                ("daysOpponent", Value::Integer(DAYS)),
                ("hoursOpponent", Value::Integer(0)),
                ("minutesOpponent", Value::Integer(0)),
                ("moves", game.movetext().into()),
                ("drawOffered", Value::Bool(game.draw_offered)),
                ("result", if game.is_drawn { "Draw" } else { "Ongoing" }.into()),
                ("eventDate", BEGUN.into()),
            ])
        };
        Value::List(games.of_player(user).map(row).collect())
    }

    fn soap(&self, request: &MockRequest) -> Result<MockAnswer, String> {
        let envelope = Envelope::parse(request.body(), &LIMITS).map_err(|error| error.to_string())?;
        let action = request.headers().get("soapaction").and_then(|action| action.to_str().ok());
        let asked = envelope.request(&self.wsdl, action).map_err(|error| error.to_string())?;
        let name = &asked.operation.name;
        if asked.is_action_other {
            return Err(format!("SOAPAction does not match the body's `{name}`"));
        }
        let output = asked.operation.output.as_ref().ok_or("an operation without a response")?;
        let result = Value::record([(format!("{name}Result").as_str(), self.call(&asked)?)]);
        Ok(match compose_envelope(&self.wsdl, output, &result) {
            Ok(text) => respond(200, XML, text),
            Err(error) => respond_text(500, &error.to_string()),
        })
    }

    /// The WSDL with the requested host as its address. Responds with 400 if `Host` is invalid.
    fn described(request: &MockRequest) -> MockAnswer {
        let host = request.headers().get("host").and_then(|host| host.to_str().ok()).unwrap_or_default();
        let is_host =
            !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".:-[]_".contains(&byte));
        if !is_host {
            return respond_text(400, "`Host` is not a valid host");
        }
        let address = format!("location=\"http://{host}/\"");
        respond(200, XML, CHESS_WSDL.replace("location=\"http://127.0.0.1:8000/\"", &address))
    }
}

impl Service for Chess {
    fn answer(&self, request: &MockRequest) -> MockAnswer {
        let query = request.uri().query().unwrap_or_default();
        match (request.method().as_str(), request.uri().path()) {
            ("GET", "/") if query.eq_ignore_ascii_case("wsdl") => Chess::described(request),
            ("GET", "/") => respond_text(200, "chess over SOAP 1.1; the WSDL is at /?wsdl"),
            // SOAP 1.1 defines the format of faults in section 4.4 and their status in section 6.2.
            ("POST", "/") => self.soap(request).unwrap_or_else(|why| respond(500, XML, compose_fault("Client", &why))),
            (_, "/") => respond_only("GET, POST"),
            _ => respond_text(404, "not found; only / is served"),
        }
    }
}

/// The arguments of a request. Nil or missing arguments read as empty, false or `None`.
struct Arguments<'e>(View<'e>);

impl Arguments<'_> {
    fn get<T>(&self, name: &str, kind: &str, read: impl Fn(&View<'_>) -> Option<T>) -> Result<Option<T>, String> {
        let Some(view) = self.0.get(name).filter(|view| !view.is_nil()) else { return Ok(None) };
        read(&view).map(Some).ok_or_else(|| format!("`{name}` is {kind}"))
    }

    fn text(&self, name: &str) -> Result<String, String> {
        Ok(self.get(name, "not a string", |view| view.as_str().map(str::to_owned))?.unwrap_or_default())
    }

    fn name(&self, name: &str) -> Result<String, String> {
        let text = self.text(name)?;
        let fits = (1..=NAME_BYTES_MAX).contains(&text.len());
        if fits { Ok(text) } else { Err(format!("`{name}` has {} bytes, expected 1 to {NAME_BYTES_MAX}", text.len())) }
    }

    fn flag(&self, name: &str) -> Result<bool, String> {
        Ok(self.get(name, "neither true nor false", |view| view.as_bool())?.unwrap_or(false))
    }

    fn integer(&self, name: &str) -> Result<Option<i64>, String> {
        self.get(name, "not an integer", |view| view.as_i64())
    }
}

#[cfg(test)]
mod tests;
