/**
 * Reads and writes the files of a run besides its journal: its head, and its state in parts.
 *
 * Both can be rebuilt from the journal, so neither is synced, and damaged or unreadable ones count as absent.
 */

import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import type { PlatformError } from "effect/PlatformError"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { randomUUID } from "node:crypto"
import * as Storable from "../../kit/storable.ts"
import { Caller } from "../../Caller.ts"
import type { DuePart } from "../../store-kit/StateParts.ts"
import type { StoreError } from "../../KernelError.ts"
import * as RunCodec from "../../RunCodec.ts"
import type { RunState } from "../../RunState.ts"
import type { JournalHead } from "../../store-kit/StoreRules.ts"
import { openOwn, readIfThere } from "./disk.ts"
import type { Histories } from "./fileHistories.ts"
import type * as Log from "./lineLog.ts"

/** The format of heads. */
const headFormat = 2

/** A head, and the length of the journal when it was written. */
export interface KeptHead {
  readonly head: JournalHead
  readonly bytes: number
  /** Whether an older version wrote it, which does not know the model. */
  readonly isOlder: boolean
}

/** Reads a head. */
export const read = Effect.fnUntraced(function* (
  files: FileSystem.FileSystem,
  path: string
): Effect.fn.Return<KeptHead | undefined> {
  const text = yield* Effect.orElseSucceed(readIfThere(files, `${path}.json`), () => undefined)
  if (text === undefined) return undefined
  const kept = Storable.check(text) === "right" ? Result.getOrUndefined(decode(text)) : undefined
  if (kept === undefined) return undefined
  const status = Result.getOrUndefined(RunCodec.decodeStatus(JSON.stringify(kept.status)))
  if (status === undefined) return undefined
  const { bytes, caller, format: _, model, parentRunId, version, ...rest } = kept
  const head = {
    ...rest,
    status,
    version,
    caller,
    parentRunId: parentRunId ?? undefined,
    model: model ?? undefined
  }
  return { head, bytes, isOlder: model === undefined }
})

/** Replaces a head as a whole. */
export const write = (
  files: FileSystem.FileSystem,
  path: string,
  head: JournalHead,
  bytes: number
): Effect.Effect<void, PlatformError> => {
  const { model = null, parentRunId = null, ...rest } = head
  const text = Storable.seal(
    JSON.stringify({ format: headFormat, ...rest, parentRunId, model, bytes }, undefined, 2) + "\n"
  )
  return Effect.acquireUseRelease(
    Effect.succeed(`${path}.${randomUUID()}.tmp`),
    (draft) =>
      Effect.andThen(
        files.writeFileString(draft, text, { flag: "wx", mode: 0o600 }),
        files.rename(draft, `${path}.json`)
      ),
    (draft, exit) => (exit._tag === "Success" ? Effect.void : Effect.ignore(files.remove(draft, { force: true })))
  )
}

/** The part of a state that is stored. */
export interface Parts {
  readonly state: RunState
  readonly mark: RunCodec.Mark
  /** The position at which the journal continues. */
  readonly place: Log.Place
}

/** Reads the parts of a state. Unreadable ones are removed, and new ones are written from the beginning. */
export const readParts = Effect.fnUntraced(function* (
  files: FileSystem.FileSystem,
  path: string,
  codec: RunCodec.RunCodec,
  histories: Histories
): Effect.fn.Return<Parts | undefined, PlatformError> {
  const text = yield* readIfThere(files, `${path}.parts`)
  if (text === undefined) return undefined
  const lines = text.split("\n").filter((line) => line !== "")
  const parts = lines.map((line) => line.slice(line.indexOf(" ") + 1))
  const state = Result.getOrUndefined(codec.decodeState(parts, yield* histories.earlier(parts[0])))
  const offset = Number.parseInt(lines.at(-1) ?? "")
  if (state === undefined || !Number.isSafeInteger(offset)) {
    yield* files.remove(`${path}.parts`, { force: true })
    return undefined
  }
  return {
    state,
    mark: { turns: state.turns.length, prompt: state.prompt },
    place: { offset, seq: state.revision, format: RunCodec.format, isWhole: true, isDamaged: false }
  }
})

/** Writes a part of a state, with the position in the journal from which a load continues. */
export const writePart = Effect.fnUntraced(function* (
  files: FileSystem.FileSystem,
  path: string,
  { mark, state }: DuePart,
  { offset }: Log.Place,
  earlier: RunCodec.Earlier | undefined
): Effect.fn.Return<void, PlatformError | StoreError, Scope.Scope> {
  const part = yield* Effect.fromResult(RunCodec.encodeState(state, mark, earlier))
  const file = yield* openOwn(files, `${path}.parts`, { flag: "a", mode: 0o600 })
  yield* file.writeAll(new TextEncoder().encode(`${offset} ${part}\n`))
}, Effect.scoped)

const decode = Schema.decodeUnknownResult(
  Schema.fromJsonString(
    Schema.Struct({
      format: Schema.Literal(headFormat),
      runId: Schema.String,
      rootRunId: Schema.String,
      parentRunId: Schema.NullOr(Schema.String),
      agent: Schema.String,
      version: Schema.optionalKey(Schema.String),
      caller: Schema.optionalKey(Caller),
      revision: Schema.Natural,
      status: Schema.Unknown,
      turns: Schema.Natural,
      model: Schema.optionalKey(Schema.NullOr(Schema.String)),
      createdAt: Schema.Finite,
      updatedAt: Schema.Finite,
      bytes: Schema.Natural
    })
  )
)
