/**
 * Without vision, whatever the model: a picture becomes a text, the skill that needs vision is refused, and another one
 * is used in its place.
 */
import { Effect, Schema } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { Media, Skill } from "kernai"
import { OllamaProvider } from "kernai/provider"
import { Scenario } from "kernai/testing"
import { redSquare } from "./_media.ts"

const look = Skill.make("look_at_photo", {
  description: "What the photo of an article shows",
  input: Schema.Struct({ article: Schema.Int }),
  effects: "read",
  requires: ["vision"],
  execute: () => Effect.succeed("a red square")
})

const catalogue = Skill.make("catalogue_entry", {
  description: "What the catalogue says about an article",
  input: Schema.Struct({ article: Schema.Int }),
  effects: "read",
  execute: ({ article }) => Effect.succeed(article === 81 ? "81: a tile, red, 10 x 10 cm" : `${article}: sold out`)
})

const ask = (name: string) => `<block type="command" name="${name}">{"article": 81}</block>`
const replies = [ask("look_at_photo"), ask("catalogue_entry"), '<block type="final">Article 81 is red.</block>']

// The vendor's side: replies in turn, as long as the request has a text in place of the picture.
const vendor = HttpClient.make((request) => {
  const sent = request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : ""
  const turn = sent.split('"role":"assistant"').length - 1
  const isText = sent.includes("[image unavailable: image/png]") && !sent.includes('"images"')
  const content = isText ? replies[turn] : '<block type="final">This model cannot read the request.</block>'
  const line = { message: { role: "assistant", content }, done: true, done_reason: "stop" }
  return Effect.succeed(HttpClientResponse.fromWeb(request, new Response(`${JSON.stringify(line)}\n`)))
})

export default Scenario.make({
  name: "text-only",
  description: "A model that may not see reads a placeholder, and asks the catalogue instead",
  instructions: "You sell tiles. Say which colour an article has. If you cannot see its photo, ask the catalogue.",
  capabilities: ["text"],
  skills: [look, catalogue],
  input: ["Which colour is article 81?", Media.fromBytes(redSquare, "image/png")],
  offline: Effect.provideService(OllamaProvider.make(), HttpClient.HttpClient, vendor),
  expect: ({ model, recording, result }) => {
    const refused = recording.some((entry) => JSON.stringify(entry.data).includes("requires vision"))
    return [
      ...(model !== "recorded" || refused ? [] : ["a skill that needs vision was not refused"]),
      ...(/red/i.test(result ?? "") ? [] : ["the colour is wrong"])
    ]
  }
})
