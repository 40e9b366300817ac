/**
 * Shares the earlier messages of conversations among runs, so that a conversation is stored once.
 *
 * Each message of a user is a run, and each run begins with all earlier messages. A store that kept them in every run
 * would grow with the square of the conversation. So the earlier messages are cut into chunks of about 4 KiB, each of
 * which refers to the one before it, and a run refers to its last chunk. The id of a chunk follows from its messages and
 * those before them, so runs that begin alike share chunks, also runs of different callers. The last messages, less than a chunk,
 * stay in the run.
 *
 * A store keeps a chunk while a run or a later chunk refers to it. It reads a run with all of its messages, so exports,
 * forks and replays need no other run, and removing a run takes no messages from the others.
 *
 * @since 0.1.0
 */

import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { StoreError } from "../KernelError.ts"
import type { Message } from "../Message.ts"
import * as RunCodec from "../RunCodec.ts"
import type { RunRecord } from "../RunState.ts"

/**
 * Messages to store under an id, with the id of the chunk before them.
 *
 * @category models
 * @since 0.1.0
 */
export interface Chunk {
  readonly id: string
  readonly before: string | undefined
  readonly content: ReadonlyArray<Message>
  /** The number of messages up to its end. */
  readonly messages: number
}

/**
 * Returns the chunks of the earlier messages of a run, oldest first, given the first records of the run. Other records
 * and short histories have none.
 *
 * @category models
 * @since 0.1.0
 */
export type Cut = (records: ReadonlyArray<RunRecord>) => Result.Result<ReadonlyArray<Chunk>, StoreError>

/**
 * Creates the function that cuts histories, given the SHA-256 of a text in hexadecimal digits.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (sha256: (text: string) => string): Cut => {
  // Messages are immutable, and a conversation gives the same ones to each of its runs.
  const known = new WeakMap<Message, Digest>()
  const digestOf = (message: Message): Result.Result<Digest, StoreError> => {
    const found = known.get(message)
    if (found !== undefined) return Result.succeed(found)
    return Result.map(RunCodec.encodeMessage(message), (text) => {
      const digest = { chars: text.length, sum: sha256(text) }
      known.set(message, digest)
      return digest
    })
  }
  return ([record]) => {
    const event = record?.revision === 1 ? record.events[0] : undefined
    if (event?.type !== "run_started" || event.history === 0) return none
    const earlier = event.messages.slice(0, event.history)
    return Result.map(Result.all(earlier.map(digestOf)), (digests) => chunksOf(earlier, digests, sha256))
  }
}

const none: ReturnType<Cut> = Result.succeed([])

/** The number of characters of an encoded message, and the digest of them. */
interface Digest {
  readonly chars: number
  readonly sum: string
}

const chunksOf = (
  messages: ReadonlyArray<Message>,
  digests: ReadonlyArray<Digest>,
  sha256: (text: string) => string
): ReadonlyArray<Chunk> => {
  const chunks: Array<Chunk> = []
  let chars = 0
  let sums: Array<string> = []
  for (const [index, digest] of digests.entries()) {
    chars += digest.chars
    sums.push(digest.sum)
    if (chars < chunkChars) continue
    const last = chunks.at(-1)
    const id = `${sha256([last?.id, ...sums].join("\n"))}.${last === undefined ? "first" : linkTo(last.id)}`
    const content = messages.slice(index + 1 - sums.length, index + 1)
    chunks.push({ id, before: last?.id, content, messages: index + 1 })
    chars = 0
    sums = []
  }
  return chunks
}

/** A chunk ends with the message that makes it this long. */
const chunkChars = 4_096

/**
 * Returns the link in the id of a chunk to the chunk before it. A list of ids is enough to know which ones are needed.
 *
 * @category getters
 * @since 0.1.0
 */
export const linkOf = (id: string): string => id.slice(id.indexOf(".") + 1)

/**
 * Returns the link by which the ids of later chunks name a chunk.
 *
 * @category getters
 * @since 0.1.0
 */
export const linkTo = (id: string): string => id.slice(0, 16)

/**
 * Returns what a run stores instead of the messages in chunks.
 *
 * @category getters
 * @since 0.1.0
 */
export const earlierOf = (chunks: ReadonlyArray<Chunk>): RunCodec.Earlier | undefined => {
  const last = chunks.at(-1)
  return last && { chunk: last.id, messages: last.messages }
}

/**
 * Encodes a chunk as text.
 *
 * @category codecs
 * @since 0.1.0
 */
export const encode = ({ before, content }: Chunk): Result.Result<string, StoreError> =>
  RunCodec.encodeChunk({ messages: content, ...(before === undefined ? {} : { before }) })

/**
 * Reads the messages that a run refers to, from its last chunk back to the first one. `find` returns a chunk by its id.
 * Without one of them the messages are incomplete, and the codec refuses the run as corrupt.
 *
 * @category running
 * @since 0.1.0
 */
export const read = Effect.fnUntraced(function* <E, R>(
  earlier: RunCodec.Earlier,
  find: (id: string) => Effect.Effect<RunCodec.Chunk | undefined, E, R>
): Effect.fn.Return<ReadonlyArray<Message>, E, R> {
  const found: Array<ReadonlyArray<Message>> = []
  let left = earlier.messages
  // Each chunk has a message, so damaged chunks that follow each other in a circle end, too.
  for (let id: string | undefined = earlier.chunk; id !== undefined && left > 0;) {
    const chunk: RunCodec.Chunk | undefined = yield* find(id)
    if (chunk === undefined || chunk.messages.length === 0) break
    found.push(chunk.messages)
    left -= chunk.messages.length
    id = chunk.before
  }
  return Arr.flatten(found.reverse())
})
