/** A way to a server on which connections fall silent: they stay open, and nothing comes through any more, or not yet. */
import { Effect, type Scope } from "effect"
import * as net from "node:net"
import { Transform } from "node:stream"

export interface Way {
  readonly port: number
  /** Silences all connections there are; new ones are as good as any. */
  readonly silence: () => void
  /** Holds back the next answer with this text for so long. */
  readonly delay: (text: string, ms: number) => void
}

/** A port of the loopback interface that leads to another. */
export const wayTo = (port: number): Effect.Effect<Way, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<Way & { readonly server: net.Server }>((resume) => {
      const open = new Set<() => void>()
      let late: { readonly text: string; readonly ms: number } | undefined
      const server = net.createServer((near) => {
        const far = net.connect(port, "127.0.0.1")
        near.pipe(far)
        const answers = new Transform({
          transform: (chunk: Buffer, _, done) => {
            if (late === undefined || !chunk.includes(late.text)) return done(null, chunk)
            setTimeout(() => done(null, chunk), late.ms)
            late = undefined
          }
        })
        far.pipe(answers).pipe(near)
        for (const socket of [near, far]) socket.on("error", () => {})
        const silence = () => {
          near.unpipe(far).resume()
          far.unpipe(answers).destroy()
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
        resume(
          Effect.succeed({
            server,
            port,
            silence: () => open.forEach((silence) => silence()),
            delay: (text, ms) => (late = { text, ms })
          })
        )
      })
    }),
    ({ server }) => Effect.sync(() => server.close())
  )
