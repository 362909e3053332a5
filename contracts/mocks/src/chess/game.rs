//! One game of correspondence chess.

use cozy_chess::{Board, Color, GameStatus, Move, util};

/// Length of a game's movetext at most, plies: longer ones are none that people play (the longest that is possible has 11,797).
const PLIES_MAX: usize = 12_000;

/// What became of a game, as Xfcc names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ongoing,
    WhiteWins,
    BlackWins,
    Draw,
}

impl Outcome {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Outcome::Ongoing => "Ongoing",
            Outcome::WhiteWins => "WhiteWins",
            Outcome::BlackWins => "BlackWins",
            Outcome::Draw => "Draw",
        }
    }

    /// As it stands behind the moves. Source: the PGN standard, section 8.2.6.
    fn mark(self) -> &'static str {
        match self {
            Outcome::Ongoing => "*",
            Outcome::WhiteWins => "1-0",
            Outcome::BlackWins => "0-1",
            Outcome::Draw => "1/2-1/2",
        }
    }
}

/// What a player wants to do; of several the first that is set counts, in this order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MoveRequest {
    pub(crate) accept_draw: bool,
    pub(crate) claim_draw: bool,
    pub(crate) resign: bool,
    /// Number of the ply that this is, from 1.
    pub(crate) movecount: i64,
    /// In algebraic notation.
    pub(crate) mv: String,
    /// A draw is offered with the move.
    pub(crate) offer_draw: bool,
}

/// A game.
#[derive(Debug, Clone)]
pub(crate) struct Game {
    pub(crate) id: i64,
    pub(crate) white: String,
    pub(crate) black: String,
    /// `YYYY.MM.DD`.
    pub(crate) begun: String,
    pub(crate) outcome: Outcome,
    /// The side to move has been offered a draw.
    pub(crate) draw_offered: bool,
    board: Board,
    moves: Vec<String>,
}

impl Game {
    pub(crate) fn new(id: i64, white: String, black: String, begun: String) -> Game {
        let board = Board::default();
        let outcome = Outcome::Ongoing;
        Game { id, white, black, begun, outcome, draw_offered: false, board, moves: Vec::new() }
    }

    /// One where somebody plays against himself, else two.
    pub(crate) fn players(&self) -> impl Iterator<Item = &str> {
        let black = Some(self.black.as_str()).filter(|black| *black != self.white);
        [self.white.as_str()].into_iter().chain(black)
    }

    pub(crate) fn is_player(&self, name: &str) -> bool {
        self.white == name || self.black == name
    }

    /// Whether it is this player's turn; nobody's when the game is over.
    pub(crate) fn is_turn(&self, name: &str) -> bool {
        let mover = match self.board.side_to_move() {
            Color::White => &self.white,
            Color::Black => &self.black,
        };
        self.outcome == Outcome::Ongoing && mover == name
    }

    /// The moves as PGN has them, with the result behind: `1. e4 d5 *`.
    pub(crate) fn movetext(&self) -> String {
        let mut text = String::new();
        for (ply, mv) in self.moves.iter().enumerate() {
            if ply % 2 == 0 {
                text.push_str(&format!("{}. ", ply / 2 + 1));
            }
            text.push_str(mv);
            text.push(' ');
        }
        text.push_str(self.outcome.mark());
        text
    }

    /// Does what the player wants whose turn it is.
    ///
    /// # Errors
    /// Why not, as `MakeAMoveResult` names it.
    pub(crate) fn act(&mut self, wish: &MoveRequest) -> Result<(), &'static str> {
        if wish.accept_draw {
            if !self.draw_offered {
                return Err("NoDrawWasOffered");
            }
            self.end(Outcome::Draw);
            return Ok(());
        }
        // The case study claims a draw only where none is due, so this mock grants none.
        if wish.claim_draw {
            return Err("InvalidMove");
        }
        if wish.resign {
            self.end(match self.board.side_to_move() {
                Color::White => Outcome::BlackWins,
                Color::Black => Outcome::WhiteWins,
            });
            return Ok(());
        }
        if wish.movecount != self.moves.len() as i64 + 1 {
            return Err("InvalidMoveNumber");
        }
        if self.moves.len() == PLIES_MAX {
            return Err("InvalidMove");
        }
        let mv = read(&self.board, &wish.mv).ok_or("InvalidMove")?;
        self.moves.push(util::display_san_move(&self.board, mv).to_string());
        self.board.play_unchecked(mv);
        self.draw_offered = wish.offer_draw;
        match (self.board.status(), self.board.side_to_move()) {
            (GameStatus::Ongoing, _) => {}
            (GameStatus::Drawn, _) => self.end(Outcome::Draw),
            (GameStatus::Won, Color::White) => self.end(Outcome::BlackWins),
            (GameStatus::Won, Color::Black) => self.end(Outcome::WhiteWins),
        }
        Ok(())
    }

    fn end(&mut self, outcome: Outcome) {
        self.outcome = outcome;
        self.draw_offered = false;
    }
}

/// The legal move that a text means: `e4`, `Nbd7`, `exd8=Q+`, `O-O`; `None` where there is none, or where several are meant. Marks behind it (`+`, `#`, `!`, `?`)
/// may be missing or wrong. Source: the PGN standard, section 8.2.3.
fn read(board: &Board, text: &str) -> Option<Move> {
    let bare = text.trim().trim_end_matches(['+', '#', '!', '?']);
    let mv = util::parse_san_move(board, bare).ok()?;
    // The library has castling as the king taking its rook, and reads `Kxh1` so, too.
    let castles = board.color_on(mv.to) == Some(board.side_to_move());
    (castles == bare.starts_with('O')).then_some(mv)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn game() -> Game {
        Game::new(1, "anna".to_owned(), "ben".to_owned(), "2026.11.22".to_owned())
    }

    fn play(game: &mut Game, moves: &str) {
        for mv in moves.split_whitespace() {
            let movecount = game.moves.len() as i64 + 1;
            game.act(&MoveRequest { movecount, mv: mv.to_owned(), ..MoveRequest::default() })
                .unwrap_or_else(|why| panic!("{mv}: {why}"));
        }
    }

    #[test]
    fn moves_are_written_with_their_numbers() {
        let mut game = game();
        for (mv, text) in [("", "*"), ("e4", "1. e4 *"), ("d5", "1. e4 d5 *"), ("exd5", "1. e4 d5 2. exd5 *")] {
            play(&mut game, mv);
            assert_eq!(game.movetext(), text);
        }
        assert!(game.is_turn("ben") && !game.is_turn("anna") && !game.is_turn("carl"));
    }

    #[test]
    fn games_end_as_chess_has_it() {
        for (moves, outcome, end) in [
            ("f3 e5 g4 Qh4", Outcome::BlackWins, "g4 Qh4# 0-1"),
            ("e4 e5 Qh5 Nc6 Bc4 Nf6 Qxf7", Outcome::WhiteWins, "4. Qxf7# 1-0"),
            // The shortest known stalemate, by Sam Loyd.
            (
                "e3 a5 Qh5 Ra6 Qxa5 h5 h4 Rah6 Qxc7 f6 Qxd7 Kf7 Qxb7 Qd3 Qxb8 Qh7 Qxc8 Kg6 Qe6",
                Outcome::Draw,
                "10. Qe6 1/2-1/2",
            ),
        ] {
            let mut game = game();
            play(&mut game, moves);
            assert_eq!(game.outcome, outcome, "{moves}");
            assert!(game.movetext().ends_with(end), "{}", game.movetext());
            assert!(!game.is_turn("anna") && !game.is_turn("ben"));
        }
    }

    #[test]
    fn moves_are_read_as_people_write_them() {
        for (fen, text, written) in [
            ("", "Ng1f3!", "Nf3"),
            ("", "e5", ""),
            ("", "", ""),
            ("", "é4", ""),
            ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "O-O", "O-O"),
            ("r3k2r/8/8/8/8/8/8/R3K2R w kq - 0 1", "O-O", ""),
            ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "Kxh1", ""),
            ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "Rxa8", "Rxa8+"),
            ("4k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a8", ""),
        ] {
            let board = if fen.is_empty() { Board::default() } else { Board::from_fen(fen, false).unwrap() };
            let found = read(&board, text).map(|mv| util::display_san_move(&board, mv).to_string());
            assert_eq!(found.unwrap_or_default(), written, "{fen} {text}");
        }
    }
}
