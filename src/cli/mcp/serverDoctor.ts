/**
 * What `kernai mcp doctor` does.
 */

import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Read from "../../internal/base/files.ts"
import { Limits } from "../../Limits.ts"
import * as McpDoctor from "../../mcp/McpDoctor.ts"
import { Codes, CommandFailed, unread, usage } from "../exit.ts"
import { paint } from "../pen.ts"
import { Screen } from "../screen.ts"
import * as Text from "../terminalText.ts"
import * as Servers from "./servers.ts"

/** Prints what is found about every server. Fails when something is wrong. */
export const examine = Effect.fnUntraced(function* (file: string, asJson: boolean) {
  const screen = yield* Screen
  const fs = yield* FileSystem.FileSystem
  const { fetchedBytes } = yield* Limits
  const name = Text.excerpt(file, 80)
  const text = yield* Effect.mapError(Read.text(fs, file, fetchedBytes), (refusal) => unread(name, refusal))
  const findings = yield* McpDoctor.examine(text).pipe(
    Effect.provide(Layer.merge(Servers.kept(file), FetchHttpClient.layer)),
    Effect.mapError((error) => (error instanceof CommandFailed ? error : usage(Text.excerpt(error.message, 400))))
  )
  screen.out(asJson ? `${Text.json(findings)}\n` : findings.map((finding) => shown(finding, screen.colors)).join(""))
  const wrong = findings.filter(({ state }) => state === "wrong").length
  if (wrong > 0) {
    return yield* new CommandFailed({
      code: Codes.failed,
      reason: wrong === 1 ? "one thing is wrong" : `${wrong} things are wrong`
    })
  }
})

const tones = { ok: "good", warning: "warning", wrong: "bad" } as const

const shown = ({ advice, detail, server, state }: McpDoctor.Finding, colors: boolean): string => {
  const label = paint(state.padEnd(7), tones[state], { colors })
  const line = `${label} ${Text.flat(server ?? "config")}  ${Text.flat(detail)}\n`
  return advice === undefined ? line : `${line}        ${Text.flat(advice)}\n`
}
