/**
 * Holds the requests of a provider against the rules of its format, over conversations that vendors are known to refuse.
 */

import * as Effect from "effect/Effect"
import * as Contents from "../../Content.ts"
import type { Message } from "../../Message.ts"
import { answering, asking, demand, type ProviderCheck, readAll, said } from "./providerChecks.ts"
import { violationsIn } from "./wireChecks.ts"

const text = Contents.text
const call = Contents.toolUse("c", "look", {})
const result = Contents.toolResult("c", [text("seen")])
const cut = "\u{1f3af}".slice(0, 1)

const user = (...content: Message["content"]): Message => ({ role: "user", content })
const model = (...content: Message["content"]): Message => ({ role: "assistant", content })
const tool = (...content: Message["content"]): Message => ({ role: "tool", content })

/** A conversation, and the fault in it that vendors refuse. */
const conversations: ReadonlyArray<readonly [kind: string, messages: ReadonlyArray<Message>]> = [
  [
    "half of a surrogate pair, or NUL",
    [
      user(text(cut)),
      model(Contents.toolUse("c", "look", { [cut]: "\0" })),
      tool(Contents.toolResult("c", [text(`${cut}\0`)])),
      user(text("?"))
    ]
  ],
  [
    "a call by an invented name",
    [
      user(text("go")),
      model(Contents.toolUse("c", "browser.tabs.open", {}), Contents.toolUse("d", "", {})),
      tool(result),
      tool(Contents.toolResult("d", [text("x")]))
    ]
  ],
  [
    "a blank text",
    [
      user(text("")),
      model(text("\n"), call),
      tool(Contents.toolResult("c", [text(" ")])),
      model(text("")),
      user(text("?"))
    ]
  ],
  ["a call without its result", [user(text("go")), model(call), user(text("?"))]],
  ["a result without its call", [user(text("go")), tool(result), user(text("?"))]],
  ["a late result", [user(text("go")), model(call), user(text("wait")), tool(result), user(text("?"))]],
  [
    "results with other messages between them",
    [
      user(text("go")),
      model(call, Contents.toolUse("d", "look", {})),
      tool(result),
      user(text("and")),
      tool(Contents.toolResult("d", [text("x")]))
    ]
  ],
  ["an id that is used twice", [user(text("go")), model(call), tool(result), model(call), tool(result)]],
  ["a message of the model at its beginning", [model(text("hi")), user(text("?"))]],
  ["thinking that nothing follows", [user(text("go")), model(Contents.thinking("hm")), user(text("?"))]]
]

const look = { name: "look", description: "Looks", inputSchema: { type: "object" } } as const

export const ruleChecks: ReadonlyArray<ProviderCheck> = conversations.map(([kind, messages]) => ({
  name: `sends a request that its vendor accepts for a conversation with ${kind}`,
  body: Effect.fnUntraced(function* ({ open, reply, wire }) {
    if (wire === undefined) return
    const { bodies, client } = answering(() => said(reply))
    yield* Effect.orDie(readAll(yield* open(client), { ...asking(messages), tools: [look] }))
    const body: unknown = yield* Effect.try(() => JSON.parse(bodies[0] ?? "")).pipe(Effect.orDie)
    const [first] = violationsIn(wire, body)
    yield* demand(first === undefined, `${first?.path}: ${first?.detail} (${first?.rule})`)
  })
}))
