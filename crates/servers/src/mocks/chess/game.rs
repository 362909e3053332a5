//! One game of correspondence chess.

use cozy_chess::{Board, Color};

use super::san;

/// Length of a game's movetext at most, plies: longer ones are none that people play (the longest that is possible has 11,797).
const PLIES_MAX: usize = 12_000;
/// Halfmoves without a pawn's move or a capture after which a draw may be claimed. Source: FIDE Laws of Chess 9.3.
const CLAIM_CLOCK: u8 = 100;
/// Times that a position must have been there for the same. Source: 9.2.
const CLAIM_REPETITIONS: usize = 3;

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
    /// Positions since the last pawn's move or capture, for repetitions.
    positions: Vec<Board>,
}

impl Game {
    pub(crate) fn new(id: i64, white: String, black: String, begun: String) -> Game {
        let board = Board::default();
        let positions = vec![board.clone()];
        let outcome = Outcome::Ongoing;
        Game { id, white, black, begun, outcome, draw_offered: false, board, moves: Vec::new(), positions }
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
        if wish.claim_draw {
            if !self.is_claimable() {
                return Err("InvalidMove");
            }
            self.end(Outcome::Draw);
            return Ok(());
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
        let mv = san::read(&self.board, &wish.mv).ok_or("InvalidMove")?;
        self.moves.push(san::write(&self.board, mv));
        self.board.play_unchecked(mv);
        // No position comes again after a pawn's move or a capture.
        if self.board.halfmove_clock() == 0 {
            self.positions.clear();
        }
        self.positions.push(self.board.clone());
        self.draw_offered = wish.offer_draw;
        if !san::has_moves(&self.board) {
            self.end(match (self.board.checkers().is_empty(), self.board.side_to_move()) {
                (true, _) => Outcome::Draw,
                (false, Color::White) => Outcome::BlackWins,
                (false, Color::Black) => Outcome::WhiteWins,
            });
        } else if san::is_dead(&self.board) {
            self.end(Outcome::Draw);
        }
        Ok(())
    }

    fn is_claimable(&self) -> bool {
        let repetitions = self.positions.iter().filter(|position| position.same_position(&self.board)).count();
        repetitions >= CLAIM_REPETITIONS || self.board.halfmove_clock() >= CLAIM_CLOCK
    }

    fn end(&mut self, outcome: Outcome) {
        self.outcome = outcome;
        self.draw_offered = false;
    }
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
    fn a_draw_is_claimed_after_the_third_time() {
        let claim = MoveRequest { claim_draw: true, ..MoveRequest::default() };
        let mut game = game();
        play(&mut game, "Nf3 Nf6 Ng1 Ng8");
        assert_eq!(game.act(&claim), Err("InvalidMove"), "the second time");
        play(&mut game, "Nf3 Nf6 Ng1 Ng8");
        assert_eq!(game.act(&claim), Ok(()));
        assert_eq!((game.outcome, game.movetext().ends_with("1/2-1/2")), (Outcome::Draw, true));
    }

    #[test]
    fn a_draw_is_claimed_after_fifty_moves() {
        let mut game = game();
        game.board.set_halfmove_clock(99);
        let claim = MoveRequest { claim_draw: true, ..MoveRequest::default() };
        assert_eq!(game.act(&claim), Err("InvalidMove"));
        play(&mut game, "Nf3");
        assert_eq!(game.act(&claim), Ok(()));
    }
}
