/**
 * Whom a server on this computer answers (S-13).
 *
 * A web page the user looks at can send requests here too: by an address of
 * its own that leads here, or from its own origin. Both say so in their
 * headers, so they are refused before anything of the body is read.
 */

/** Who may ask. */
export interface Admission {
  /** As they stand in a `Host` header, such as `127.0.0.1:3000`. */
  readonly hosts: ReadonlySet<string>
  /** As they stand in an `Origin` header. Requests without one come from no web page. */
  readonly origins: ReadonlySet<string>
  /** Sent as `Authorization: Bearer …`; undefined asks for none. */
  readonly token: string | undefined
}

/** The parts of a request that decide. */
export interface Asked {
  readonly method: string
  readonly headers: { readonly [name: string]: string | undefined }
}

/** The names a server on loopback has, with its port. */
export const loopbackHosts = (port: number): ReadonlyArray<string> =>
  ["127.0.0.1", "localhost", "[::1]"].map((host) => `${host}:${port}`)

/** Why a request is refused: with which status, and what it is told to whoever set it up. */
export interface Refusal {
  readonly status: 401 | 403
  readonly reason: string
}

/** Why a request is refused, if it is. */
export const refusal = ({ headers, method }: Asked, { hosts, origins, token }: Admission): Refusal | undefined => {
  const { authorization, host, origin } = headers
  if (host === undefined || !hosts.has(host.toLowerCase())) return refusals.host
  if (origin !== undefined && !origins.has(origin)) return refusals.origin
  // Without an origin of ours nobody asks beforehand, and only a form posts text.
  if (method === "OPTIONS" && origin === undefined) return refusals.beforehand
  if (headers["content-type"] !== undefined && isSimple.test(headers["content-type"])) return refusals.body
  return token === undefined || isSame(authorization ?? "", `Bearer ${token}`) ? undefined : refusals.token
}

const forbidden = (reason: string): Refusal => ({ status: 403, reason })

const refusals = {
  host: forbidden("this server does not go by the name in the Host header; 'hosts' (--allow-host) adds names"),
  origin: forbidden("no page of this origin may ask; 'origins' names those that may"),
  beforehand: forbidden("only a page asks beforehand, and names its origin"),
  body: forbidden("the body has to be sent as application/json"),
  token: { status: 401, reason: "the token is missing or wrong; it is sent as 'Authorization: Bearer TOKEN'" }
} as const

// What a page may send anywhere without asking.
const isSimple = /^\s*(?:text\/plain|application\/x-www-form-urlencoded|multipart\/form-data)/i

/** Compares in a time that does not tell how far two texts agree. */
const isSame = (given: string, expected: string): boolean => {
  let difference = given.length ^ expected.length
  for (let at = 0; at < expected.length; at++) difference |= (given.charCodeAt(at) || 0) ^ expected.charCodeAt(at)
  return difference === 0
}
