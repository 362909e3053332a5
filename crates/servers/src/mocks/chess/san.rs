//! Moves as people write them: `e4`, `Nbd7`, `exd8=Q+`, `O-O`. Source: the PGN standard, section 8.2.3.

use cozy_chess::{Board, Move, Piece, Square, util};

/// The legal move that a text means; `None` where there is none, or where several are meant. Marks behind it (`+`, `#`, `!`, `?`) may be missing or wrong, more
/// than needed may be said of where a piece comes from, and castling may have zeros.
pub(crate) fn read(board: &Board, text: &str) -> Option<Move> {
    let bare = text.trim().trim_end_matches(['+', '#', '!', '?']);
    let bare = match bare {
        "0-0" => "O-O",
        "0-0-0" => "O-O-O",
        other => other,
    };
    let mv = util::parse_san_move(board, bare).ok()?;
    // The library has castling as the king taking its rook, and reads `Kxh1` so, too.
    let castles = board.color_on(mv.to) == Some(board.side_to_move());
    (castles == bare.starts_with('O')).then_some(mv)
}

/// A legal move, as the standard writes it.
pub(crate) fn write(board: &Board, mv: Move) -> String {
    util::display_san_move(board, mv).to_string()
}

/// Whether the side to move has a legal move.
pub(crate) fn has_moves(board: &Board) -> bool {
    board.generate_moves(|moves| !moves.is_empty())
}

/// Neither side can mate, whatever it does: bare kings, or one with a knight or a bishop, or bishops of one colour of squares. Source: FIDE Laws of Chess 5.2.2.
pub(crate) fn is_dead(board: &Board) -> bool {
    let heavy = [Piece::Pawn, Piece::Rook, Piece::Queen];
    if heavy.iter().any(|piece| !board.pieces(*piece).is_empty()) {
        return false;
    }
    let (knights, bishops) = (board.pieces(Piece::Knight), board.pieces(Piece::Bishop));
    if knights.is_empty() {
        let dark = |square: Square| (square.file() as usize + square.rank() as usize) % 2;
        let colours = bishops.into_iter().map(dark).collect::<std::collections::BTreeSet<_>>();
        return colours.len() <= 1;
    }
    knights.len() + bishops.len() == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(fen: &str) -> Board {
        if fen.is_empty() { Board::default() } else { Board::from_fen(fen, false).unwrap() }
    }

    fn legal(board: &Board) -> Vec<Move> {
        let mut all = Vec::new();
        board.generate_moves(|moves| {
            all.extend(moves);
            false
        });
        all
    }

    #[test]
    fn moves_are_read_and_written_as_the_standard_has_them() {
        for (fen, text, written) in [
            ("", "e4", "e4"),
            ("", "Nf3", "Nf3"),
            ("", "Ng1f3!", "Nf3"),
            ("", "e2e4", "e4"),
            ("", "e2-e4", ""),
            ("", "e5", ""),
            ("", "Ke2", ""),
            ("", "", ""),
            ("", "x", ""),
            ("", "é4", ""),
            ("", "Pe4", "e4"),
            ("", "e4=Q", ""),
            ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "O-O", "O-O"),
            ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "0-0-0", "O-O-O"),
            ("r3k2r/8/8/8/8/8/8/R3K2R w kq - 0 1", "O-O", ""),
            ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "Kxh1", ""),
            ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "Rxa8", "Rxa8+"),
            ("4k3/8/8/8/8/8/8/R3K2R w - - 0 1", "Rd1", "Rd1"),
            ("4k3/8/8/8/8/8/4K3/R6R w - - 0 1", "Rd1", ""),
            ("4k3/8/8/8/8/8/4K3/R6R w - - 0 1", "Rad1", "Rad1"),
            ("4k3/8/8/R7/8/8/4K3/R7 w - - 0 1", "Ra3", ""),
            ("4k3/8/8/R7/8/8/4K3/R7 w - - 0 1", "R1a3", "R1a3"),
            ("6k1/8/8/2Q1Q3/8/8/8/2Q1K3 w - - 0 1", "Qe3", ""),
            ("6k1/8/8/Q1Q5/8/8/8/Q3K3 w - - 0 1", "Qa5c3", "Qa5c3"),
            ("4k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a8=Q", "a8=Q+"),
            ("4k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a8N", "a8=N"),
            ("4k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a8", ""),
            ("4k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a8=K", ""),
            ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "exd6", "exd6"),
            ("4k3/8/8/3pP3/8/8/8/4K3 w - - 0 1", "exd6", ""),
            ("4r1k1/8/8/8/8/8/4N3/4K3 w - - 0 1", "Nc3", ""),
            ("6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1", "Ra8", "Ra8#"),
        ] {
            let board = board(fen);
            let found = read(&board, text).map(|mv| write(&board, mv)).unwrap_or_default();
            assert_eq!(found, written, "{fen} {text}");
        }
    }

    /// Positions with their numbers of move sequences, as engines agree on them. Source: <https://www.chessprogramming.org/Perft_Results>.
    #[test]
    fn the_moves_are_those_of_chess() {
        fn perft(board: &Board, depth: u32) -> u64 {
            if depth == 0 {
                return 1;
            }
            let after = |mv: Move| {
                let mut next = board.clone();
                next.play_unchecked(mv);
                perft(&next, depth - 1)
            };
            legal(board).into_iter().map(after).sum()
        }
        for (fen, depth, count) in [
            ("", 3, 8_902),
            ("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1", 2, 2_039),
            ("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", 3, 2_812),
            ("r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1", 2, 264),
        ] {
            assert_eq!(perft(&board(fen), depth), count, "{fen}");
        }
    }

    #[test]
    fn every_legal_move_is_read_as_it_was_written() {
        for fen in [
            "",
            "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
            "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
            "6k1/8/8/Q1Q5/8/8/8/Q3K3 w - - 0 1",
        ] {
            let board = board(fen);
            for mv in legal(&board) {
                let text = write(&board, mv);
                assert_eq!(read(&board, &text), Some(mv), "{fen} {text}");
            }
        }
    }

    #[test]
    fn dead_positions_are_known() {
        for (fen, expected) in [
            ("4k3/8/8/8/8/8/8/4K3 w - - 0 1", true),
            ("4k3/8/8/8/8/8/8/4KB2 w - - 0 1", true),
            ("4k3/8/8/8/8/8/8/4KN2 w - - 0 1", true),
            ("4kb2/8/8/8/8/8/8/2B1K3 w - - 0 1", true),
            ("2b1k3/8/8/8/8/8/8/2B1K3 w - - 0 1", false),
            ("4k3/8/8/8/8/8/8/4KNN1 w - - 0 1", false),
            ("4k3/8/8/8/8/8/P7/4K3 w - - 0 1", false),
        ] {
            assert_eq!(is_dead(&board(fen)), expected, "{fen}");
        }
    }
}
