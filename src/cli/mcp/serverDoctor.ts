/**
 * Examines a config of MCP servers, and the servers.
 */

import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Read from "../../kit/files.ts"
import { Limits } from "../../Limits.ts"
import * as McpDoctor from "../../mcp/McpDoctor.ts"
import { asUsage, failed, unreadable } from "../exit.ts"
import { Screen } from "../screen.ts"
import * as Text from "../terminalText.ts"
import * as Servers from "./servers.ts"

/** Prints the findings about every server. Fails if there is a problem. */
export const examine = Effect.fnUntraced(function* (file: string, asJson: boolean) {
  const screen = yield* Screen
  const fs = yield* FileSystem.FileSystem
  const { fetchedBytes } = yield* Limits
  const name = Text.excerpt(file, 80)
  const text = yield* Effect.mapError(Read.text(fs, file, fetchedBytes), (refusal) => unreadable(name, refusal))
  const findings = yield* McpDoctor.examine(text).pipe(
    Effect.provide(Layer.merge(Servers.storage(file), FetchHttpClient.layer)),
    Effect.mapError((error) => asUsage(error))
  )
  screen.out(asJson ? `${Text.json(findings)}\n` : findings.map((finding) => lineOf(finding, screen.answers)).join(""))
  const wrong = findings.filter(({ state }) => state === "wrong").length
  if (wrong > 0) return yield* failed(`${Text.count(wrong, "problem")} found`)
})

const tones = { ok: "good", warning: "warning", wrong: "bad" } as const

const lineOf = ({ advice, detail, server, state }: McpDoctor.Finding, look: Text.Look): string => {
  const label = Text.paint(state.padEnd(7), tones[state], look)
  const line = `${label} ${Text.flat(server ?? "config")}  ${Text.flat(detail)}\n`
  return advice === undefined ? line : `${line}        ${Text.flat(advice)}\n`
}
