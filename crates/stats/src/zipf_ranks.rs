//! Zipf ranks, drawn from a table of a few hundred blocks, mostly without logarithms.

use crate::item_sizes::{Cell, alias};
use crate::popularity::Zipf;
use crate::random::Rng;

/// Ratio of a block's first rank to its width. A last rank is at least 1/(1 + 1/32)^exponent as popular as the first.
const PARTS: u64 = 32;

/// Neighboring ranks from `start`, which is the most popular of them.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Block {
    cell: Cell,
    /// First rank, from 0; `width` is the number of ranks.
    start: u64,
    width: u64,
    least: f64,
}

/// Zipf's law over a fixed population, sampled by alias and rejection. A sample draws a block, weighted by its width
/// times the popularity of its first rank (Walker 1977), and then any of its ranks. The rank is accepted with its
/// popularity relative to the first rank (von Neumann 1951). Exact for every exponent; rejections are rare.
#[derive(Clone, Debug, PartialEq)]
pub struct ZipfRanks {
    exponent: f64,
    blocks: Vec<Block>,
}

impl ZipfRanks {
    /// Creates the table of `law`, with 48 bytes per block: 344 blocks for 400,000 ranks.
    pub fn new(law: Zipf) -> ZipfRanks {
        let Zipf { n, exponent } = law;
        let height = |rank: u64| (-exponent * ((rank + 1) as f64).ln()).exp();
        let (mut blocks, mut weights) = (Vec::new(), Vec::new());
        let mut start = 0;
        while start < n {
            let width = (start / PARTS).max(1).min(n - start);
            let (first, last) = (height(start), height(start + width - 1));
            blocks.push(Block { cell: Cell::default(), start, width, least: last / first });
            weights.push(width as f64 * first);
            start += width;
        }
        for (block, cell) in blocks.iter_mut().zip(alias(&weights)) {
            block.cell = cell;
        }
        ZipfRanks { exponent, blocks }
    }

    /// Draws a rank; rank 0 is the most popular.
    pub fn sample(&self, rng: &mut Rng) -> u64 {
        loop {
            let product = u128::from(rng.next_u64()) * self.blocks.len() as u128;
            let mut block = &self.blocks[(product >> 64) as usize];
            if product as u64 >= block.cell.own {
                block = &self.blocks[block.cell.other as usize];
            }
            if block.width == 1 {
                return block.start;
            }
            let rank = block.start + rng.below(block.width);
            let u = rng.unit_f64();
            if u < block.least || u < self.over_first(rank, block.start) {
                return rank;
            }
        }
    }

    #[cold]
    fn over_first(&self, rank: u64, start: u64) -> f64 {
        (-self.exponent * ((rank + 1) as f64 / (start + 1) as f64).ln()).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goodness_of_fit::chi_square;

    #[test]
    fn blocks_have_the_mass_of_their_ranks() {
        for (n, exponent) in [(1, 1.0), (31, 0.9), (64, 0.0), (5_000, 0.3), (40_000, 0.9), (40_000, 1.0), (3_000, 2.7)]
        {
            let law = Zipf::new(n, exponent);
            let ranks = ZipfRanks::new(law);
            let each = 1.0 / ranks.blocks.len() as f64;
            let mut drawn = vec![0.0; ranks.blocks.len()];
            for (index, Block { cell, .. }) in ranks.blocks.iter().enumerate() {
                let own = cell.own as f64 / 18_446_744_073_709_551_616.0;
                drawn[index] += each * own;
                drawn[cell.other as usize] += each * (1.0 - own);
            }
            let taken = |block: &Block| {
                let all = (block.start..block.start + block.width).map(|rank| ranks.over_first(rank, block.start));
                all.sum::<f64>() / block.width as f64
            };
            let left = ranks.blocks.iter().zip(&drawn).map(|(block, drawn)| drawn * taken(block)).collect::<Vec<_>>();
            let total = left.iter().sum::<f64>();
            let mut next = 0;
            for (block, left) in ranks.blocks.iter().zip(&left) {
                assert_eq!(block.start, next);
                next += block.width;
                let exact = law.head_mass(next) - law.head_mass(block.start);
                assert!((left / total - exact).abs() < 1e-13, "{n} {exponent}: {block:?} {left} of {exact}");
            }
            assert_eq!(next, n);
            assert!(total > 0.98 || exponent > 1.0, "{n} {exponent}: {total} are taken");
        }
    }

    #[test]
    fn a_million_ranks_fit_only_their_distribution() {
        for (n, exponent) in [(10, 0.0), (1_000, 0.3), (200_000, 0.99), (400_000, 0.9), (1 << 40, 1.21), (5_000, 2.7)] {
            let (law, mut rng) = (Zipf::new(n, exponent), Rng::new(12));
            let ranks = ZipfRanks::new(law);
            // Cells with about 2 % of the mass each also reveal small errors everywhere.
            let mut ends = vec![0];
            while *ends.last().unwrap() < n {
                let from = *ends.last().unwrap();
                let (mut step, below) = (1, law.head_mass(from));
                while from + step < n && law.head_mass(from + step) - below < 0.02 {
                    step *= 2;
                }
                ends.push((from + step).min(n));
            }
            let mut counts = vec![0; ends.len() - 1];
            for _ in 0..1_000_000 {
                let rank = ranks.sample(&mut rng);
                counts[ends.partition_point(|end| *end <= rank) - 1] += 1;
            }
            let against = |law: &Zipf| {
                let shares = ends.windows(2).map(|pair| law.head_mass(pair[1]) - law.head_mass(pair[0]));
                chi_square(&counts, &shares.collect::<Vec<_>>()).unwrap().p
            };
            assert!(against(&law) > 1e-3, "{n} {exponent}: {}", against(&law));
            let other = Zipf::new(n, exponent + (exponent * 0.01).max(0.01));
            assert!(against(&other) < 1e-3, "{n} {exponent}: {}", against(&other));
        }
    }
}
