/**
 * The recorded conversations that come with the package.
 */

import * as Effect from "effect/Effect"
import { readFileSync } from "node:fs"
import * as MediaFile from "../../internal/words/mediaFile.ts"
import * as Cassette from "../../testing/Cassette.ts"
import * as ReplayProvider from "../../testing/ReplayProvider.ts"
import { usage } from "../exit.ts"
import { excerpt } from "../terminalText.ts"

/** What comes with the package; the one that is played unless another is named comes first. */
export const bundled: ReadonlyArray<{ readonly name: string; readonly about: string }> = [
  {
    name: "anthropic_scenario_data_analysis",
    about: "five calls in one reply and a final that is too early; then the answer"
  },
  { name: "openai_scenario_data_analysis", about: "looks up users, works out a share, answers" },
  { name: "openai_scenario_weather", about: "asks for the weather, answers" },
  { name: "ollama_scenario_weather", about: "asks for the weather, thinks, answers" }
]

/** The name of the one that is played unless another is named. */
export const standard = "anthropic_scenario_data_analysis"

/** A conversation, ready to be played. */
export interface Recording {
  readonly name: string
  readonly cassette: Cassette.Cassette
  readonly instructions: string
  readonly question: string
  /** The answer it ended with, if that was recorded too. */
  readonly answer: string | undefined
}

/** Reads a recording: one of the package by its name, or a file inside `root` (S-4). */
export const open = Effect.fnUntraced(function* (name: string, root: string) {
  const text = yield* Effect.mapError(textOf(name, root), (reason) =>
    usage(`${excerpt(name, 80)} cannot be replayed: ${reason}; 'kernai run --list' names what can`)
  )
  const cassette = yield* Effect.mapError(Cassette.parse(text), (error) =>
    usage(`${excerpt(name, 80)} cannot be replayed: ${error.detail}`)
  )
  return yield* read(cassette)
})

const textOf = (name: string, root: string): Effect.Effect<string, string> =>
  bundled.some((recording) => recording.name === name)
    ? Effect.try({
        try: () => readFileSync(new URL(`${name}.json`, folder), "utf8"),
        catch: () => "it is missing from the package"
      })
    : Effect.flatMap(MediaFile.make(root), (readFile) =>
        Effect.map(readFile(name), (bytes) => new TextDecoder().decode(bytes))
      )

/** Finds question, instructions and answer of a recording. */
export const read = Effect.fnUntraced(function* (cassette: Cassette.Cassette) {
  const body = cassette.interactions[0]?.request.body ?? null
  const question = ReplayProvider.turns(body).find((turn) => turn.role === "user")?.text
  if (question === undefined) return yield* usage(`${excerpt(cassette.name, 80)} holds no question`)
  const expected = cassette.expected_result
  const recording: Recording = {
    name: cassette.name,
    cassette,
    instructions: ReplayProvider.instructions(body),
    question,
    answer: typeof expected === "string" ? expected : undefined
  }
  return recording
})

// From src and from dist alike, the examples are three folders up.
const folder = new URL("../../../examples/recordings/", import.meta.url)
