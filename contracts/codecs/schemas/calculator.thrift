/** A discovery service tells where an adder is; the adder adds. */
namespace * calculator

/** Where a service answers. */
struct Hostinfo {
  1: string host
  2: i32 port
}

service AdderDiscovery {
  /** The adder that registered last. */
  Hostinfo get_adder_info()
  void register_adder(1: string host, 2: i32 port)
}

service Adder {
  i32 add(1: i32 a, 2: i32 b)
}
