/** Checks the contents that a provider sends. */

import * as Effect from "effect/Effect"
import type { MediaContent } from "../../../Content.ts"
import * as Contents from "../../../Content.ts"
import type { Message } from "../../../Message.ts"
import { answering, asking, demand, type ProviderCheck, readAll, said } from "./providerCheck.ts"

const bytes = new Uint8Array([250, 251, 252, 253])
const media: ReadonlyArray<MediaContent> = [
  Contents.image({ data: bytes, mediaType: "image/png" }),
  Contents.audio({ data: bytes, mediaType: "audio/wav" }),
  Contents.video({ data: bytes, mediaType: "video/mp4" }),
  Contents.document({ data: bytes, mediaType: "application/pdf" })
]

const conversation: ReadonlyArray<Message> = [
  { role: "system", content: [Contents.text("the rules")] },
  { role: "user", content: [Contents.text("the question"), ...media] },
  { role: "assistant", content: [Contents.text("the call"), Contents.toolUse("c", "look", { at: "this" })] },
  { role: "tool", content: [Contents.toolResult("c", [Contents.text("the result")])] },
  { role: "user", content: [Contents.text("go on")] }
]

/** Returns a text as it is written inside JSON. */
const inJson = (text: string): string => JSON.stringify(text).slice(1, -1)

export const contentChecks: ReadonlyArray<ProviderCheck> = [
  {
    name: "sends every text of a conversation, and a placeholder for media its model does not take",
    body: Effect.fnUntraced(function* ({ open, reply }) {
      const { bodies, client } = answering(() => said(reply))
      yield* Effect.orDie(readAll(yield* open(client), asking(conversation)))
      const body = bodies[0] ?? ""
      const texts = [
        "the rules",
        "the question",
        "the call",
        "the result",
        "go on",
        ...media.map((part) => Contents.placeholder(part))
      ]
      for (const text of texts) yield* demand(body.includes(inJson(text)), `'${text}' is not sent`)
      yield* demand(!body.includes("+vv8/Q"), "a medium is sent that the model does not take")
    })
  },
  {
    name: "sends a message the same way each time, so that a vendor can cache the prefix",
    body: Effect.fnUntraced(function* ({ open, reply }) {
      const { bodies, client } = answering(() => said(reply))
      const provider = yield* open(client)
      for (const length of [3, 3]) yield* Effect.orDie(readAll(provider, asking(conversation.slice(0, length))))
      yield* demand(bodies[0] === bodies[1], "the same request is written in two ways")
    })
  }
]
