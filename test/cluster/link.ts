/**
 * A connection between processes that can be cut in silence: what is sent meanwhile arrives when it is healed, and
 * neither side learns that the other is out of reach. An end of one side arrives when it is healed, too, as a reset does
 * in a network: a connection that nobody would ever answer holds a process for ever.
 */
import { connect, createServer, type Socket } from "node:net"

export interface Link {
  readonly port: number
  readonly cut: () => void
  readonly heal: () => void
  readonly close: () => void
}

/** Forwards a port of this machine to another one. */
export const open = (to: number): Promise<Link> => {
  const pairs = new Set<readonly [Socket, Socket]>()
  let isCut = false
  const hold = ([a, b]: readonly [Socket, Socket]) => {
    a.unpipe(b).pause()
    b.unpipe(a).pause()
  }
  const pass = ([a, b]: readonly [Socket, Socket]) => {
    a.pipe(b)
    b.pipe(a)
  }
  const server = createServer({ noDelay: true }, (from) => {
    const there = connect({ port: to, host: "127.0.0.1", noDelay: true })
    const pair = [from, there] as const
    pairs.add(pair)
    const over = () => {
      // The end of one side does not pass a link that is cut either.
      if (isCut) return
      pairs.delete(pair)
      pair.forEach((socket) => socket.destroy())
    }
    for (const socket of pair) socket.on("error", over).on("close", over)
    if (isCut) hold(pair)
    else pass(pair)
  })
  return new Promise((resolve) =>
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      resolve({
        port: typeof address === "object" && address !== null ? address.port : 0,
        cut: () => {
          isCut = true
          pairs.forEach(hold)
        },
        heal: () => {
          isCut = false
          for (const pair of pairs) {
            if (pair.every((socket) => !socket.destroyed)) pass(pair)
            else {
              pairs.delete(pair)
              pair.forEach((socket) => socket.destroy())
            }
          }
        },
        close: () => {
          server.close()
          for (const pair of pairs) pair.forEach((socket) => socket.destroy())
        }
      })
    })
  )
}
