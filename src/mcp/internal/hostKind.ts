/** Distinguishes hosts on the internet from hosts that only this computer, its link or its network can reach. */

import { BlockList, isIP } from "node:net"

type HostKind = "public" | "private" | "link-local" | "loopback"

/** Returns the kind of the host of an address. Names are not looked up, only their endings count. */
export const hostKind = ({ hostname }: URL): HostKind => {
  const host = hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "")
  const family = isIP(host)
  if (family === 0) return /^(?:.+\.)?localhost$/.test(host) ? "loopback" : isLocalName(host) ? "private" : "public"
  return kinds.find(([, list]) => list.check(host, family === 4 ? "ipv4" : "ipv6"))?.[0] ?? "public"
}

// A name without a dot, or under a domain without public servers.
const isLocalName = (host: string): boolean =>
  !host.includes(".") || /\.(?:local|internal|intranet|lan|home|corp|home\.arpa)$/.test(host)

const listOf = (...subnets: ReadonlyArray<string>): BlockList => {
  const list = new BlockList()
  for (const subnet of subnets) {
    const [address = "", prefix] = subnet.split("/")
    list.addSubnet(address, Number(prefix), address.includes(":") ? "ipv6" : "ipv4")
  }
  return list
}

// A `BlockList` finds IPv4 addresses inside IPv6 ones, except those of NAT64 and 6to4.
const kinds: ReadonlyArray<readonly [HostKind, BlockList]> = [
  ["loopback", listOf("127.0.0.0/8", "0.0.0.0/8", "::1/128", "::/128")],
  ["link-local", listOf("169.254.0.0/16", "fe80::/10")],
  [
    "private",
    listOf(
      "10.0.0.0/8",
      "172.16.0.0/12",
      "192.168.0.0/16",
      "100.64.0.0/10",
      "192.0.0.0/24",
      "198.18.0.0/15",
      "224.0.0.0/3",
      "fc00::/7",
      "fec0::/10",
      "ff00::/8",
      "64:ff9b::/96",
      "64:ff9b:1::/48",
      "2002::/16"
    )
  ]
]
