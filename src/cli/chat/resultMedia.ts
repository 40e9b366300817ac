/** The media of results: pictures drawn by a terminal that can, and otherwise files that a person can open. */

import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import * as Scope from "effect/Scope"
import { imageSize, imageType } from "../../kit/imageHeader.ts"
import { findText } from "../../kit/variables.ts"
import { MediaStore } from "../../MediaStore.ts"
import type { MediaRef } from "../../RunEvent.ts"
import { Screen } from "../screen.ts"
import * as Text from "../terminalText.ts"

/** How a terminal is asked to draw a picture. */
export type Protocol = "kitty" | "iterm" | "none"

/** Shows a medium of the run of a message. */
export type ShowMedia = (rootRunId: string, medium: MediaRef) => Effect.Effect<void>

/** Files are deleted with the scope. A medium that is gone, or that no file can be written for, is left out. */
export const make = Effect.fnUntraced(function* (
  look: Text.Look
): Effect.fn.Return<ShowMedia, never, FileSystem.FileSystem | MediaStore | Path.Path | Scope.Scope | Screen> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const screen = yield* Screen
  const store = yield* MediaStore
  const protocol = yield* protocolOfTerminal
  const scope = yield* Effect.scope
  const folder = yield* Effect.cached(Scope.provide(fs.makeTempDirectoryScoped({ prefix: "kernai-" }), scope))
  let count = 0
  return (rootRunId, { fileId, mediaType = "application/octet-stream", type }) =>
    Effect.gen(function* () {
      if (fileId === undefined) return
      const bytes = yield* Effect.flatMap(store.run(rootRunId), (media) => media.bytes(fileId))
      const picture = drawn(protocol, bytes, look)
      if (picture !== undefined) return screen.progress(picture)
      const file = path.join(yield* folder, `${type}-${++count}.${extensionOf(mediaType)}`)
      yield* fs.writeFile(file, bytes, { mode: 0o600 })
      const label = Text.paint(type.padEnd(10), "label", look)
      screen.progress(`  ${label}${Text.flat(file)}  (${Text.excerpt(mediaType, 40)}, until the chat ends)\n`)
    }).pipe(Effect.scoped, Effect.ignore)
})

const protocolOfTerminal = Effect.map(
  Effect.all({ term: findText("TERM"), program: findText("TERM_PROGRAM"), multiplexer: findText("TMUX") }),
  (variables) => protocolOf(variables)
)

interface Variables {
  readonly term?: string | undefined
  readonly program?: string | undefined
  readonly multiplexer?: string | undefined
}

/** Returns the protocol of a terminal by its variables. A multiplexer forwards neither. */
export const protocolOf = ({ multiplexer, program, term = "" }: Variables): Protocol => {
  if (multiplexer !== undefined || /^(?:screen|tmux)/.test(term)) return "none"
  if (term === "xterm-kitty" || term === "xterm-ghostty") return "kitty"
  return program === "iTerm.app" || program === "WezTerm" ? "iterm" : "none"
}

const mostBytes = 4 * 1024 * 1024

/** Returns the request to draw a picture, at most as wide as the terminal. Undefined if the terminal cannot. */
export const drawn = (
  protocol: Protocol,
  bytes: Uint8Array,
  { columns }: Pick<Text.Look, "columns">
): string | undefined => {
  const type = imageType(bytes)
  if (protocol === "none" || type === undefined || bytes.length > mostBytes) return undefined
  const { width = 0 } = imageSize(bytes) ?? {}
  // A column is about ten pixels wide.
  const cells = Math.max(1, Math.min(Math.ceil(width / 10), columns - 2, 60))
  const data = Buffer.from(bytes).toString("base64")
  if (protocol === "iterm") return `\u001b]1337;File=inline=1;size=${bytes.length};width=${cells}:${data}\u0007\n`
  if (type !== "image/png") return undefined
  const pieces = data.match(/.{1,4096}/g) ?? []
  const requests = pieces.map((piece, index) => {
    const start = index === 0 ? `a=T,f=100,c=${cells},q=2,` : ""
    return `\u001b_G${start}m=${index + 1 < pieces.length ? 1 : 0};${piece}\u001b\\`
  })
  return `${requests.join("")}\n`
}

const extensionOf = (mediaType: string): string => /^[a-z]+\/([a-z0-9]{1,8})(?:[;+]|$)/.exec(mediaType)?.[1] ?? "bin"
