/**
 * Looks up the host of an address that another server named, since any public name may resolve to this computer or its
 * network. A name that changes its addresses afterwards gains nothing: only https is allowed then, so the server at the
 * new address needs a certificate of that name.
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { type HostKind, hostKind } from "../../kit/hostKind.ts"

/** Returns the addresses of a name, or none if it cannot be looked up, as behind a proxy or in a browser. */
export const Lookup = Context.Reference<(name: string) => Effect.Effect<ReadonlyArray<string>>>("kernai/mcp/Lookup", {
  defaultValue: () => (name) =>
    Effect.callback<ReadonlyArray<string>>((resume) => {
      const dns = globalThis.process?.getBuiltinModule?.("node:dns")
      if (dns === undefined) return resume(Effect.succeed([]))
      dns.lookup(name, { all: true, verbatim: true }, (error, found) => {
        resume(Effect.succeed(error === null ? found.map(({ address }) => address) : []))
      })
    })
})

/** Returns false if a name resolves to an address at which the server itself is not, and which is not public. */
export const isAllowed = Effect.fnUntraced(function* (target: URL, server: URL) {
  if (target.hostname === server.hostname) return true
  const kinds = yield* kindsOf(target)
  if (kinds.every((kind) => kind === "public")) return true
  const own = new Set(yield* kindsOf(server))
  return own.size === 1 && kinds.every((kind) => kind === "public" || own.has(kind))
})

const kindsOf = Effect.fnUntraced(function* (url: URL): Effect.fn.Return<ReadonlyArray<HostKind>> {
  const named = hostKind(url)
  if (named !== "public") return [named]
  const lookup = yield* Lookup
  const addresses = yield* lookup(url.hostname.replace(/^\[|\]$/g, ""))
  return addresses.length === 0
    ? [named]
    : addresses.map((address) => hostKind({ hostname: address.replace(/%.*$/, "") }))
})
