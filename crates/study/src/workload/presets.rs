//! Presets of cache workloads.

use stats::Distribution;

use super::{Keys, NewKey, Operations, Popularity, SizeLaw, Tail, Ttl, ValueLength, Values, Workload};

/// A named workload that a study can start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Name of the preset, as in `preset = "etc-2012"`.
    pub name: &'static str,
    /// Sources of the preset's numbers, and the choices made by quintain.
    pub about: &'static str,
}

/// Presets that a study can name.
pub const PRESETS: [Preset; 12] = [
    Preset {
        name: "course",
        about: "a course's cache benchmark: gamma(4, 7) keys, gamma(1, 200) values, reuse 0.96 uniform over all earlier keys, get/set/delete 0.67/0.30/0.03; misses are filled",
    },
    Preset {
        name: "course-no-fill",
        about: "the same as the course ran it: misses are not filled, so the hit ratio tends to set / (set + delete) = 0.91",
    },
    Preset {
        name: "etc-2012",
        about: "Facebook's general pool (Atikoglu et al. 2012): lengths and GET:update 30:1 as published, value tail from 15 B; the paper gives no popularity: Zipf 0.9 over 400,000 keys was chosen here",
    },
    Preset {
        name: "etc-2012-location-0",
        about: "the same with the other reading of the value tail, from 0 B: mean 186 B instead of 194 B",
    },
    Preset {
        name: "twitter-c12",
        about: "Twitter's cluster 12 (Yang et al. 2020): mean lengths as constants, one-hit keys as 0.8143 of objects over 1.3 uses each; 1,000,000 other keys were chosen here",
    },
    Preset {
        name: "twitter-c45",
        about: "Twitter's cluster 45: add is a set; one-hit keys 0.4874 of objects over 2.9 uses; 1,000,000 other keys were chosen here",
    },
    Preset {
        name: "twitter-c52",
        about: "Twitter's cluster 52: gets is a get, add and cas are sets; one-hit keys 0.1936 of objects over 32.6 uses; 1,000,000 other keys were chosen here",
    },
    Preset {
        name: "ycsb-a",
        about: "YCSB A, 50/50 read/update; 1,000 B; 100,000 records and an exact Zipf 0.99 were chosen here",
    },
    Preset { name: "ycsb-b", about: "YCSB B, 95/5 read/update; the rest as A" },
    Preset { name: "ycsb-c", about: "YCSB C, reads only; the rest as A" },
    Preset { name: "ycsb-d", about: "YCSB D, 95 % reads of the latest (Zipf 0.99 over ages), 5 % inserts" },
    Preset { name: "ycsb-f", about: "YCSB F, 50/50 read/read-modify-write; the rest as A" },
];

/// Shares of values of 0 to 14 bytes in ETC, 0.44155 in total. Source: Atikoglu et al. 2012, table 5.
pub const ETC_VALUES_HEAD: [f64; 15] = [
    0.00536, 0.00047, 0.17820, 0.09239, 0.00018, 0.02740, 0.00065, 0.00606, 0.00023, 0.00837, 0.00837, 0.08989,
    0.00092, 0.00326, 0.01980,
];

pub(crate) fn plain(preset: Option<String>, key_size: SizeLaw, value_size: SizeLaw) -> Workload {
    Workload {
        preset,
        operations: Operations::default(),
        fill: true,
        ttl: Vec::new(),
        keys: Keys {
            count: 100_000,
            popularity: Popularity::Uniform,
            shift_every: None,
            reuse: None,
            new: NewKey::Any,
            one_hit: 0.0,
            invalidation: 0.0,
            neighbours_hot: false,
            size: key_size,
            max_bytes: super::KEY_MAX_BYTES,
        },
        values: Values { size: value_size, max_bytes: 1 << 20, length: ValueLength::PerKey },
        trace: None,
    }
}

/// The workload of the preset with this name; `None` if there is none.
pub fn preset(name: &str) -> Option<Workload> {
    let gamma = |shape, scale| Distribution::Gamma { shape, scale }.into();
    let constant = |value| Distribution::Constant { value }.into();
    let (key_size, value_size, [get, set, delete, read_modify_write]) = match name {
        "course" | "course-no-fill" => (gamma(4.0, 7.0), gamma(1.0, 200.0), [0.67, 0.30, 0.03, 0.0]),
        "etc-2012" => (etc_keys(), etc_values(15.0), [30.0, 1.0, 0.0, 0.0]),
        "etc-2012-location-0" => (etc_keys(), etc_values(0.0), [30.0, 1.0, 0.0, 0.0]),
        "twitter-c12" => (constant(44.0), constant(1_030.0), [0.20, 0.80, 0.0, 0.0]),
        "twitter-c45" => (constant(10.0), constant(120.0), [0.85, 0.15, 0.0, 0.0]),
        "twitter-c52" => (constant(20.0), constant(273.0), [0.93, 0.06, 0.0, 0.0]),
        // A key is `user` and a 64-bit hash in decimal digits; a value has ten fields of 100 bytes.
        "ycsb-a" => (constant(23.0), constant(1_000.0), [0.5, 0.5, 0.0, 0.0]),
        "ycsb-b" => (constant(23.0), constant(1_000.0), [0.95, 0.05, 0.0, 0.0]),
        "ycsb-c" | "ycsb-d" => (constant(23.0), constant(1_000.0), [1.0, 0.0, 0.0, 0.0]),
        "ycsb-f" => (constant(23.0), constant(1_000.0), [0.5, 0.0, 0.0, 0.5]),
        _ => return None,
    };
    let mut w = plain(Some(name.to_owned()), key_size, value_size);
    w.operations = Operations { get, set, delete, read_modify_write };
    match name {
        "course" | "course-no-fill" => {
            w.fill = name == "course";
            (w.keys.count, w.keys.reuse) = (0, Some(0.96));
        }
        "etc-2012" | "etc-2012-location-0" => {
            w.keys.count = 400_000;
            w.keys.popularity = Popularity::Zipf { exponent: 0.9 };
        }
        "twitter-c12" => twitter(&mut w, 0.3048, 0.8143 / 1.3, &[(300, 0.98), (299, 0.02)]),
        "twitter-c45" => twitter(&mut w, 0.6372, 0.4874 / 2.9, &[(15 * DAY_S, 1.0)]),
        "twitter-c52" => {
            twitter(&mut w, 1.2117, 0.1936 / 32.6, &[(DAY_S, 0.65), (14 * DAY_S, 0.27), (DAY_S / 2, 0.07)]);
        }
        _ => {
            w.keys.popularity = Popularity::Zipf { exponent: 0.99 };
            if name == "ycsb-d" {
                (w.keys.reuse, w.keys.new) = (Some(0.95), NewKey::Set);
            }
        }
    }
    Some(w)
}

const DAY_S: u32 = 86_400;

fn twitter(workload: &mut Workload, exponent: f64, one_hit: f64, ttl: &[(u32, f64)]) {
    workload.keys.count = 1_000_000;
    workload.keys.popularity = Popularity::Zipf { exponent };
    workload.keys.one_hit = one_hit;
    workload.ttl = ttl.iter().map(|&(seconds, share)| Ttl { seconds, share }).collect();
}

fn etc_keys() -> SizeLaw {
    Distribution::Gev { location: 30.7984, scale: 8.20449, shape: 0.078688 }.into()
}

fn etc_values(location: f64) -> SizeLaw {
    let head = ETC_VALUES_HEAD.iter().enumerate().map(|(bytes, share)| (bytes as f64, bytes as f64, *share));
    let size = Distribution::Pareto { location, scale: 214.476, shape: 0.348238 };
    let weight = 1.0 - ETC_VALUES_HEAD.iter().sum::<f64>();
    SizeLaw::Empirical { values: head.collect(), tail: Some(Tail { size, weight }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_can_be_sampled_and_survive_json() {
        for Preset { name, about } in PRESETS {
            let workload = preset(name).unwrap();
            assert_eq!(workload.problems(), [], "{name}");
            assert!(!about.is_empty() && workload.preset.as_deref() == Some(name));
            let text = serde_json::to_string(&workload).unwrap();
            assert_eq!(serde_json::from_str::<Workload>(&text).unwrap(), workload, "{text}");
        }
        assert_eq!(preset("ycsb-e"), None);
    }

    #[test]
    fn preset_parameters_are_stable() {
        let sizes = |name| {
            let workload = preset(name).unwrap();
            let (keys, values) = (workload.key_sizes().unwrap(), workload.value_sizes().unwrap());
            let p = [0.5, 0.9, 0.99];
            let (of_keys, of_values) = (p.map(|p| keys.quantile(p)), p.map(|p| values.quantile(p)));
            format!("{:.1} {of_keys:?} {:.1} {of_values:?}", keys.mean(), values.mean())
        };
        assert_eq!(sizes("course"), "28.0 [26, 47, 70] 200.0 [139, 461, 921]");
        assert_eq!(sizes("etc-2012"), "36.2 [34, 51, 76] 194.4 [39, 520, 1899]");
        assert_eq!(sizes("etc-2012-location-0"), "36.2 [34, 51, 76] 186.1 [24, 505, 1884]");
        assert_eq!(sizes("twitter-c12"), "44.0 [44, 44, 44] 1030.0 [1030, 1030, 1030]");
        assert!((ETC_VALUES_HEAD.iter().sum::<f64>() - 0.44155).abs() < 1e-12);
    }

    #[test]
    fn mix_determines_hit_ratio_without_fills() {
        let ratio = |name| preset(name).unwrap().hit_ratio_of_mix();
        assert!((ratio("course-no-fill").unwrap() - 0.30 / 0.33).abs() < 1e-12);
        assert_eq!([ratio("course"), ratio("twitter-c52"), ratio("ycsb-c")], [None; 3]);
        let mut invalidated = preset("course-no-fill").unwrap();
        invalidated.keys.invalidation = 0.1;
        // SETs are 0.9 * 0.30 of the operations, DELETEs 0.1 + 0.9 * 0.03.
        assert!((invalidated.hit_ratio_of_mix().unwrap() - 0.27 / 0.397).abs() < 1e-12);
    }
}
