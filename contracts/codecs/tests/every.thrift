// Each type of the language once, for tests.
struct Flag {
  1: bool on
}
struct Every {
  1: bool yes
  2: bool no
  3: i8 byte_
  4: i16 short_
  5: i32 int_
  6: i64 long_
  7: double double_
  8: string text
  9: binary bytes
  30: list<bool> bools
  31: set<i16> shorts
  32: map<string, i64> counts
  33: map<i32, string> empty
  34: list<double> doubles
  35: list<Flag> flags
  36: map<bool, byte> by_bool
  32767: uuid id
}
service Test {
  oneway void every(i32 unnumbered, 1: Every all)
}
