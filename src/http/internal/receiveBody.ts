/**
 * Receives the body of a request that may be large, with one copy of its bytes in memory.
 */

import * as Effect from "effect/Effect"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Stream from "effect/Stream"
import { type HttpProblem, Invalid, TooLarge } from "../HttpProblem.ts"

/** Returns the length of the body of a request, if its headers have it. */
export const lengthOf = ({ headers }: HttpServerRequest): number | undefined => {
  const length = headers["content-length"] ?? ""
  return /^\d{1,15}$/.test(length) ? Number(length) : undefined
}

/** Receives a body. Fails for more than `most` bytes, or for other bytes than its headers have announced. */
export const receiveBody = (request: HttpServerRequest, most: number): Effect.Effect<Uint8Array, HttpProblem> => {
  const length = lengthOf(request)
  return length === undefined ? unknownLength(request, most) : knownLength(request, length)
}

const knownLength = (request: HttpServerRequest, length: number): Effect.Effect<Uint8Array, HttpProblem> =>
  Effect.suspend(() => {
    const bytes = new Uint8Array(length)
    let received = 0
    const wrong = new Invalid({ detail: "the body has not the length that its headers announce" })
    const add = (piece: Uint8Array) => {
      if (received + piece.byteLength > length) return Effect.fail(wrong)
      bytes.set(piece, received)
      received += piece.byteLength
      return Effect.void
    }
    return Effect.andThen(
      Stream.runForEach(Stream.orDie(request.stream), add),
      Effect.suspend(() => (received === length ? Effect.succeed(bytes) : Effect.fail(wrong)))
    )
  })

const unknownLength = (request: HttpServerRequest, most: number): Effect.Effect<Uint8Array, HttpProblem> =>
  Effect.suspend(() => {
    const pieces: Array<Uint8Array> = []
    let received = 0
    const add = (piece: Uint8Array) => {
      received += piece.byteLength
      if (received > most) return Effect.fail(new TooLarge({ detail: `a medium may have at most ${most} bytes` }))
      pieces.push(piece)
      return Effect.void
    }
    return Effect.map(Stream.runForEach(Stream.orDie(request.stream), add), () => {
      const bytes = new Uint8Array(received)
      let at = 0
      for (const piece of pieces) {
        bytes.set(piece, at)
        at += piece.byteLength
      }
      return bytes
    })
  })
