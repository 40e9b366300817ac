/** Messages that were typed in earlier chats, in a file that only its owner can read. */

import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import type * as Redacted from "effect/Redacted"
import { homedir } from "node:os"
import * as Read from "../../kit/files.ts"
import { findKey, findText } from "../../kit/variables.ts"
import * as Redaction from "../../Redaction.ts"

export interface InputHistory {
  /** The messages, newest first, each on one line. */
  readonly messages: ReadonlyArray<string>
  /** Keeps a message, unless it is long, or holds a secret. */
  readonly add: (message: string) => Effect.Effect<void>
}

export const none: InputHistory = { messages: [], add: () => Effect.void }

/** Opens the history of this user, which keeps no keys of providers and databases. */
export const ofUser = Effect.gen(function* () {
  const { providers } = yield* Effect.promise(() => import("../examine.ts"))
  const variables = [...providers.flatMap(([, ...needs]) => needs.flat()), "AWS_SECRET_ACCESS_KEY", "PGPASSWORD"]
  const names = new Set(variables.filter((name) => /KEY|TOKEN|PASSWORD/.test(name)))
  const secrets = yield* Effect.forEach(names, (name) => findKey([name]))
  const folders = { state: yield* findText("XDG_STATE_HOME"), local: yield* findText("LOCALAPPDATA") }
  const file = fileOf(process.platform, homedir(), folders)
  return yield* open(
    file,
    secrets.filter((secret) => secret !== undefined)
  )
})

/** The folders for data of programs that the environment names. */
interface Folders {
  readonly state?: string | undefined
  readonly local?: string | undefined
}

/** Returns the file of a user, where the platform keeps such data. */
export const fileOf = (platform: NodeJS.Platform, home: string, { local, state }: Folders): string => {
  if (platform === "win32") return `${local ?? `${home}\\AppData\\Local`}\\kernai\\chat-history`
  if (platform === "darwin") return `${home}/Library/Application Support/kernai/chat-history`
  // The XDG specification ignores relative paths.
  return `${state?.startsWith("/") === true ? state : `${home}/.local/state`}/kernai/chat-history`
}

const mostMessages = 500
const longestMessage = 2_000
const maxBytes = mostMessages * (longestMessage * 3 + 1)

/** Opens the history in a file, which the first message creates. A chat works without it: no error is reported. */
export const open = Effect.fnUntraced(function* (
  file: string,
  secrets: ReadonlyArray<Redacted.Redacted>
): Effect.fn.Return<InputHistory, never, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const redactor = Redaction.make({ secrets })
  const isKept = (message: string): boolean =>
    message.length <= longestMessage && !/\p{Cc}/u.test(message) && redactor.text(message) === message
  // A file that cannot be read stays as it is.
  const read = Read.text(fs, file, maxBytes).pipe(
    Effect.map((text) => text.split("\n").filter((line) => line !== "" && isKept(line))),
    Effect.catchIf(
      (refusal) => typeof refusal !== "string" && Read.isAbsent(refusal),
      () => Effect.succeed<ReadonlyArray<string>>([])
    )
  )
  const write = Effect.fnUntraced(function* (messages: ReadonlyArray<string>) {
    const written = `${file}.${process.pid}`
    yield* fs.makeDirectory(path.dirname(file), { recursive: true, mode: 0o700 })
    yield* fs.writeFileString(written, messages.map((message) => `${message}\n`).join(""), { mode: 0o600 })
    yield* fs.rename(written, file)
  })
  return {
    messages: (yield* Effect.orElseSucceed(read, () => [])).toReversed(),
    add: (message) =>
      isKept(message)
        ? read.pipe(
            Effect.map((before) => [...before.filter((one) => one !== message), message].slice(-mostMessages)),
            Effect.flatMap(write),
            Effect.ignore
          )
        : Effect.void
  }
})
