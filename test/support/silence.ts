/** A way to a server on which connections fall silent: they stay open, and nothing comes through any more. */
import { Effect, type Scope } from "effect"
import * as net from "node:net"

export interface Way {
  readonly port: number
  /** Silences all connections there are; new ones are as good as any. */
  readonly silence: () => void
}

/** A port of the loopback interface that leads to another. */
export const wayTo = (port: number): Effect.Effect<Way, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<Way & { readonly server: net.Server }>((resume) => {
      const open = new Set<() => void>()
      const server = net.createServer((near) => {
        const far = net.connect(port, "127.0.0.1")
        near.pipe(far)
        far.pipe(near)
        for (const socket of [near, far]) socket.on("error", () => {})
        const silence = () => {
          near.unpipe(far).resume()
          far.unpipe(near).destroy()
        }
        open.add(silence)
        near.on("close", () => {
          far.destroy()
          open.delete(silence)
        })
      })
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        resume(Effect.succeed({ server, port, silence: () => open.forEach((silence) => silence()) }))
      })
    }),
    ({ server }) => Effect.sync(() => server.close())
  )
