/** Recorded conversations in the package and in files. */

import * as Effect from "effect/Effect"
import { readFileSync } from "node:fs"
import { fileReader } from "../../store-kit/MediaScope.ts"
import * as Cassette from "../../testing/Cassette.ts"
import * as ReplayProvider from "../../testing/ReplayProvider.ts"
import { usage } from "../exit.ts"
import { packageFolder } from "../packageFolder.ts"
import { excerpt } from "../terminalText.ts"

/** The recordings in the package. */
export const bundled: ReadonlyArray<{ readonly name: string; readonly about: string }> = [
  {
    name: "anthropic_scenario_data_analysis",
    about: "five calls in one reply, with a final block that comes too early"
  },
  { name: "openai_scenario_data_analysis", about: "looks up users, works out a share, answers" },
  { name: "openai_scenario_weather", about: "asks for the weather, answers" },
  { name: "ollama_scenario_weather", about: "asks for the weather, thinks, answers" }
]

/** The recording that `kernai run` plays. */
export const standard = "anthropic_scenario_data_analysis"

/** Reads a recording: one in the package by name, or a file inside `root`. */
export const open = Effect.fnUntraced(function* (name: string, root: string) {
  const text = yield* Effect.mapError(textOf(name, root), (reason) =>
    usage(`${excerpt(name, 80)} cannot be replayed: ${reason}; 'kernai run --list' lists recordings`)
  )
  const cassette = yield* Effect.mapError(Cassette.parse(text), (error) =>
    usage(`${excerpt(name, 80)} cannot be replayed: ${error.detail}`)
  )
  const request = cassette.interactions[0]?.request.body ?? null
  const question = ReplayProvider.turns(request).find((turn) => turn.role === "user")?.text
  if (question === undefined) return yield* usage(`${excerpt(cassette.name, 80)} has no question`)
  const answer = cassette.expected_result
  return {
    name: cassette.name,
    cassette,
    instructions: ReplayProvider.instructions(request),
    question,
    answer: typeof answer === "string" ? answer : undefined
  }
})

/** A recorded conversation, with its answer if that was recorded. */
export type Recording = Effect.Success<ReturnType<typeof open>>

const textOf = (name: string, root: string): Effect.Effect<string, string> =>
  bundled.some((recording) => recording.name === name)
    ? Effect.try({
        try: () => readFileSync(new URL(`${name}.json`, folder), "utf8"),
        catch: () => "it is missing from the package"
      })
    : Effect.flatMap(fileReader(root), (readFile) =>
        Effect.map(readFile(name), (bytes) => new TextDecoder().decode(bytes))
      )

const folder = new URL("examples/recordings/", packageFolder)
