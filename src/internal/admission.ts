/**
 * Whom a server on this computer answers (S-13).
 *
 * A web page the user looks at can send requests here too: by an address of
 * its own that leads here, or from its own origin. Both say so in their
 * headers, so they are refused before anything of the body is read.
 *
 * @since 0.1.0
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

/** The status a request is refused with, if it is. */
export const refusal = ({ headers, method }: Asked, { hosts, origins, token }: Admission): 401 | 403 | undefined => {
  const { authorization, host, origin } = headers
  if (host === undefined || !hosts.has(host.toLowerCase())) return 403
  if (origin !== undefined && !origins.has(origin)) return 403
  // Without an origin of ours nobody asks beforehand, and only a form posts text.
  if (method === "OPTIONS" && origin === undefined) return 403
  if (headers["content-type"] !== undefined && isSimple.test(headers["content-type"])) return 403
  return token === undefined || isSame(authorization ?? "", `Bearer ${token}`) ? undefined : 401
}

// What a page may send anywhere without asking.
const isSimple = /^\s*(?:text\/plain|application\/x-www-form-urlencoded|multipart\/form-data)/i

/** Compares in a time that does not tell how far two texts agree. */
const isSame = (given: string, expected: string): boolean => {
  let difference = given.length ^ expected.length
  for (let at = 0; at < expected.length; at++) difference |= (given.charCodeAt(at) || 0) ^ expected.charCodeAt(at)
  return difference === 0
}
