/**
 * Whatever stands in a conversation, each adapter and bridge writes a request that satisfies the published rules of its
 * vendor, keeps the order of a reply, and loses no text.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { RequestRules } from "kernai/testing"
import * as LongRun from "../support/longRun.ts"
import { type Transcript, transcript } from "../support/transcripts.ts"
import { type Target, targets } from "../support/wires.ts"

const conversations = LongRun.times(20_000, 300)
const groups = LongRun.times(20, 2)

/** Formats that have texts and calls in one list. The others keep them in two. */
const isOrdered = ({ wire }: Target): boolean => !["chat", "mistral", "ollama"].includes(wire)

const misplaced = (body: string, replies: Transcript["replies"]): ReadonlyArray<string> =>
  replies.flatMap((marks) => {
    const places = marks.map((mark) => body.indexOf(mark)).filter((at) => at >= 0)
    return places.every((at, index) => index === 0 || at > (places[index - 1] ?? 0))
      ? []
      : [`out of order: ${marks.join(" ")}`]
  })

/** OpenAI is asked over Responses where a request has tools that it runs itself. */
const wireOf = ({ name, wire }: Target, body: unknown): RequestRules.Wire =>
  name === "openai" && typeof body === "object" && body !== null && "input" in body ? "responses" : wire

const faultsOf = Effect.fnUntraced(function* (target: Target, { asked, marks, replies }: Transcript) {
  const body = yield* target.bodyOf(asked)
  const violations = RequestRules.check(wireOf(target, body), body)
  const written = JSON.stringify(body) ?? ""
  const lost = marks.filter((mark) => !written.includes(mark))
  return [
    ...violations.map(({ detail, path, rule }) => `${rule} at ${path}: ${detail}`),
    ...lost.map((mark) => `lost: ${mark}`),
    ...(isOrdered(target) ? misplaced(written, replies) : [])
  ]
})

describe(`${conversations} conversations by chance`, () => {
  for (let group = 0; group < groups; group++) {
    it.effect(
      `satisfy the rules of every vendor, part ${group + 1} of ${groups}`,
      () =>
        Effect.gen(function* () {
          const all = yield* targets
          const found: Array<string> = []
          const share = conversations / groups
          let tried = 0
          for (let seed = group * share; seed < (group + 1) * share && found.length < 5; seed++) {
            const said = transcript(seed)
            for (const target of all) {
              for (const fault of yield* faultsOf(target, said)) found.push(`seed ${seed}, ${target.name}: ${fault}`)
              tried++
            }
          }
          console.log(`requests checked: ${tried}\nrequests refused: ${found.length}`)
          assert.strictEqual(found.slice(0, 5).join("\n"), "")
        }),
      600_000
    )
  }
})
