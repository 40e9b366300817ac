/** Checks the parts of a provider's reply. */

import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { answering, demand, type ProviderCheck, readAll, said, textIn } from "./providerCheck.ts"

/** Cuts a body into pieces, as a network may deliver it. */
const cutInto = (body: string, size: number): ReadableStream<Uint8Array> => {
  const bytes = new TextEncoder().encode(body)
  let at = 0
  return new ReadableStream({
    pull: (controller) => {
      if (at >= bytes.length) return controller.close()
      controller.enqueue(bytes.slice(at, (at += size)))
    }
  })
}

export const replyChecks: ReadonlyArray<ProviderCheck> = [
  {
    name: "reads its reply the same, however the network cuts it",
    body: Effect.fnUntraced(function* ({ open, reply }) {
      for (const size of [1, 7, 61, reply.body.length + 1]) {
        const { client } = answering(() => said(reply, cutInto(reply.body, size)))
        const parts = yield* Effect.orDie(readAll(yield* open(client)))
        yield* demand(textIn(parts) === reply.text, `pieces of ${size} bytes say ${JSON.stringify(textIn(parts))}`)
      }
    })
  },
  {
    name: "ends a reply with its only finish part",
    body: Effect.fnUntraced(function* ({ open, reply }) {
      const { client } = answering(() => said(reply))
      const parts = yield* Effect.orDie(readAll(yield* open(client)))
      const ends = parts.filter(({ type }) => type === "finish")
      yield* demand(ends.length === 1 && parts.at(-1) === ends[0], `there are ${ends.length} finish parts`)
    })
  },
  {
    name: "fails as incomplete when its reply is cut",
    body: Effect.fnUntraced(function* ({ open, reply }) {
      const half = reply.body.slice(0, Math.floor(reply.body.length / 2))
      const { client } = answering(() => said(reply, half))
      const read = yield* Effect.result(readAll(yield* open(client)))
      yield* demand(
        read._tag === "Failure" && read.failure.reason === "incomplete",
        read._tag === "Failure" ? `it fails as ${read.failure.reason}` : "it succeeds"
      )
    })
  },
  {
    name: "ends its request when its reader stops",
    body: Effect.fnUntraced(function* ({ open, reply }) {
      let isEnded = false
      const { promise: isRead, resolve } = Promise.withResolvers<void>()
      const bytes = new TextEncoder().encode(reply.body.slice(0, Math.floor(reply.body.length / 2)))
      const waiting = () =>
        new ReadableStream<Uint8Array>({
          start: (controller) => controller.enqueue(bytes),
          // Called once the first bytes are read.
          pull: () => resolve(),
          cancel: () => {
            isEnded = true
          }
        })
      const { client } = answering(() => said(reply, waiting()))
      const reading = yield* Effect.forkChild(Effect.exit(readAll(yield* open(client))))
      yield* Effect.promise(() => isRead)
      yield* Fiber.interrupt(reading)
      yield* demand(isEnded, "the request continues")
    })
  }
]
