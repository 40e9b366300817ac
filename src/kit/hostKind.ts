/** Distinguishes hosts on the internet from hosts that only this computer, its link or its network can reach. */

import * as IpNetwork from "effect/net/IpNetwork"
import * as NetAddress from "effect/net/NetAddress"
import * as Result from "effect/Result"

export type HostKind = "public" | "private" | "link-local" | "loopback"

/** Returns the kind of a host by its address or its name. Names are not looked up. */
export const hostKind = ({ hostname }: Pick<URL, "hostname">): HostKind => {
  const host = hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "")
  const address = addressOf(host)
  if (address !== undefined) return kindOf(address)
  if (loopbackNames.test(host)) return "loopback"
  return isLocalName(host) ? "private" : kindInName(host)
}

/** Returns the address in a text, if it is one. An IPv4 address inside an IPv6 one is that address. */
const addressOf = (text: string): NetAddress.IpAddress | undefined => {
  const address = Result.getOrUndefined(NetAddress.ipFromString(text))
  if (!NetAddress.isIpv6Address(address) || !NetAddress.isIpv4Mapped(address)) return address
  const [a = 0, b = 0, c = 0, d = 0] = NetAddress.ipv6ToOctets(address).slice(12)
  return Result.getOrUndefined(NetAddress.ipv4FromOctets([a, b, c, d]))
}

const kindOf = (address: NetAddress.IpAddress): HostKind =>
  kinds.find(([, networks]) => networks.some((network) => IpNetwork.contains(network, address)))?.[0] ?? "public"

// `localhost`, and public names that their owners point to loopback.
const loopbackNames = /(?:^|\.)(?:localhost|localtest\.me|lvh\.me|vcap\.me|lacolhost\.com|localho\.st)$/

/** Returns the kind of the address inside a name, as in `127.0.0.1.nip.io`, which services resolve to that address. */
const kindInName = (host: string): HostKind => {
  const dotted = [...host.matchAll(/(?<![\d])(\d{1,3})[.-](\d{1,3})[.-](\d{1,3})[.-](\d{1,3})(?![\d])/g)].map((found) =>
    found.slice(1).map(Number).join(".")
  )
  const digits = [...host.matchAll(/(?<![\da-f])[\da-f]{8}(?=\.)/g)].map(([hex]) =>
    [0, 2, 4, 6].map((at) => parseInt(hex.slice(at, at + 2), 16)).join(".")
  )
  const found = [...dotted, ...digits].flatMap((text) => addressOf(text) ?? []).map(kindOf)
  return found.find((kind) => kind !== "public") ?? "public"
}

// A name without a dot, or under a domain without public servers.
const isLocalName = (host: string): boolean =>
  !host.includes(".") || /\.(?:local|internal|intranet|lan|home|corp|home\.arpa)$/.test(host)

const listOf = (...networks: ReadonlyArray<string>): ReadonlyArray<IpNetwork.IpNetwork> =>
  networks.map((network) => IpNetwork.fromStringUnsafe(network))

const kinds: ReadonlyArray<readonly [HostKind, ReadonlyArray<IpNetwork.IpNetwork>]> = [
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
