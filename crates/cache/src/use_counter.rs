//! A 4-bit counter of uses. Higher levels stand for more uses and are reached at random (Morris 1978, Counting large
//! numbers of events in small registers). Low levels are fractions of a use, so that fading forgets keys gradually.

/// Number of uses that each level stands for, in quarters of a use.
const QUARTERS: [u32; 16] = [0, 1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384];

pub(crate) const ONE: u32 = 3;

/// Score of each level: 32 times the binary logarithm of its quarters. Level 0 counts as 1/4 of a quarter.
const SCORE: [i32; 16] = [-64, 0, 32, 64, 96, 115, 128, 147, 160, 179, 192, 211, 224, 243, 256, 275];

/// For each level, the level that one more use surely reaches, and the chance to reach the next one, times 2^32.
const MORE: [(u32, u64); 16] = {
    let mut more = [(15, 0); 16];
    let mut level = 0;
    while level < 16 {
        let sum = QUARTERS[level] + 4;
        let mut below = level;
        while below < 15 && QUARTERS[below + 1] <= sum {
            below += 1;
        }
        if below < 15 {
            let step = (QUARTERS[below + 1] - QUARTERS[below]) as u64;
            more[level] = (below as u32, (((sum - QUARTERS[below]) as u64) << 32).div_ceil(step));
        }
        level += 1;
    }
    more
};

/// The level after one more use, drawn at random so that the expected number of uses is correct.
pub(crate) fn more(level: u32, random: u64) -> u32 {
    let (below, chance) = MORE[level as usize];
    below + u32::from(random >> 32 < chance)
}

pub(crate) fn half(level: u32) -> u32 {
    match level {
        0 => 0,
        1..=4 => level - 1,
        5 => 3,
        _ => level - 2,
    }
}

/// The score of a level, for comparing items of equal size: 32 times the binary logarithm of its quarters.
pub(crate) fn score(level: u32) -> i32 {
    SCORE[level as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_level_is_the_level_of_half_the_uses() {
        for level in 0..16 {
            let half_quarters = QUARTERS[level as usize] / 2;
            let largest = (0..16).rev().find(|&at| QUARTERS[at as usize] <= half_quarters);
            assert_eq!(Some(half(level)), largest, "level {level}");
        }
    }

    #[test]
    fn scores_are_logarithms() {
        for level in 1..16 {
            let exact = 32.0 * f64::from(QUARTERS[level as usize]).log2();
            assert!((f64::from(score(level)) - exact).abs() < 0.51, "level {level}");
        }
    }

    #[test]
    fn recording_a_use_adds_one_on_average() {
        assert_eq!(more(0, 0), ONE);
        for level in 0..15 {
            let draws = 1 << 16;
            let sum: u64 = (0..draws).map(|draw| u64::from(QUARTERS[more(level, draw << 48) as usize])).sum();
            let mean = sum as f64 / draws as f64;
            assert!((mean - f64::from(QUARTERS[level as usize] + 4)).abs() < 0.01, "level {level}: {mean}");
        }
        assert_eq!(more(15, u64::MAX), 15);
    }
}
