/** The forecast of a vendor's prompt cache, against a vendor that keeps the beginnings of prompts as texts. */
import { assert, describe, it } from "@effect/vitest"
import { Content, Message, Model, type Provider } from "kernai"
import * as PromptCache from "../../../src/internal/prompt/promptCache.ts"
import { Growing } from "../../../src/kit/lists.ts"
import { estimate, ofTools } from "../../../src/internal/prompt/tokenEstimate.ts"
import { message, request } from "../../support/provider.ts"
import { randomOf } from "../../support/random.ts"
import { times } from "../../support/longRun.ts"

/** A vendor: it keeps each marked beginning of a prompt as its whole text, for five minutes since its last use. */
class Vendor {
  readonly #kept = new Map<string, number>()

  read({ messages, model, tools }: Provider.Request, now: number): number {
    const texts = [JSON.stringify([model.id, tools]), ...messages.map((one) => JSON.stringify(one))]
    const beginning = (length: number) => texts.slice(0, length + 1).join("\n")
    const tokensOf = (length: number) =>
      messages.slice(0, length).reduce((sum, one) => sum + estimate(one), ofTools(tools))
    let hit = 0
    for (let length = 1; length <= messages.length; length++) {
      const usedAt = this.#kept.get(beginning(length))
      if (usedAt === undefined || now - usedAt > 5 * 60_000) continue
      hit = tokensOf(length)
      this.#kept.set(beginning(length), now)
    }
    const marks = messages[0]?.role === "system" ? [1, messages.length] : [messages.length]
    for (const length of marks) if (tokensOf(length) >= 1024) this.#kept.set(beginning(length), now)
    return hit
  }
}

const tools = (name: string): ReadonlyArray<Provider.ToolDefinition> => [
  { name, description: "x".repeat(400), inputSchema: { type: "object" } }
]

/** The same prompt as the forecast reads it: a list that knows how it grew. */
const promptOf = ({ messages: [first, ...rest], model, tools }: Provider.Request, log = Growing.of(rest)) => ({
  model: model.id,
  tools,
  system: first === undefined ? null : Message.text(first),
  messages: log
})

/** A conversation that grows, is shortened, waits, and changes its model, tools and instructions. */
const conversation = (seed: number) => {
  const random = randomOf(seed)
  const pick = (count: number) => Math.floor(random() * count)
  let now = 0
  let model = "a"
  let named = "add"
  let instructions = "i".repeat(pick(2) === 0 ? 100 : 6_000)
  let log = Growing.of<Message.Message>([]).append([message("user", "q".repeat(pick(3_000)))])
  const next = (): readonly [Provider.Request, Growing<Message.Message>, number] => {
    switch (pick(10)) {
      case 0:
        now += 4 * 60_000
        break
      case 1:
        now += 6 * 60_000
        break
      case 2:
        model = pick(2) === 0 ? "a" : "b"
        break
      case 3:
        named = pick(2) === 0 ? "add" : "sub"
        break
      case 4:
        instructions = `${pick(2)}${"i".repeat(6_000)}`
        break
      case 5:
        log = Growing.of([message("user", "summary"), ...log.recent(2)])
        break
      default:
        log = log.append([message("assistant", "a".repeat(pick(4_000))), message("user", "q".repeat(pick(4_000)))])
    }
    now += 1_000
    const system = message("system", Content.text(instructions))
    return [request({ model: Model.make(model), tools: tools(named), messages: log.after([system]) }), log, now]
  }
  return next
}

describe("the forecast of what a vendor reads from its cache", () => {
  const conversations = times(1_000, 40)
  it(
    `is what a vendor reads, in ${conversations.toLocaleString("en")} random conversations`,
    { timeout: 180_000 },
    () => {
      let hits = 0
      let prompts = 0
      for (let seed = 1; seed <= conversations; seed++) {
        const next = conversation(seed)
        const vendor = new Vendor()
        let cache = PromptCache.empty
        for (let turn = 0; turn < 12; turn++) {
          const [asked, log, now] = next()
          const expected = PromptCache.send(cache, promptOf(asked, log), now)
          const read = vendor.read(asked, now)
          assert.strictEqual(expected.tokens, read, `seed ${seed}, turn ${turn}`)
          cache = expected.cache
          prompts++
          if (read > 0) hits++
        }
      }
      console.log(`${prompts} prompts, ${hits} of them with a hit`)
      assert.isAbove(hits, prompts / 4)
    }
  )

  const system = message("system", "i".repeat(8_000))
  const first = request({ messages: [system, message("user", "hi")], tools: tools("add"), model: Model.make("a") })
  const { cache } = PromptCache.send(PromptCache.empty, promptOf(first), 0)
  const changes: ReadonlyArray<readonly [string, Partial<Provider.Request>, number, string]> = [
    ["another model", { model: Model.make("b") }, 1, "model"],
    ["other tools", { tools: tools("sub") }, 1, "tools"],
    ["another system text", { messages: [message("system", "other"), ...first.messages.slice(1)] }, 1, "system"],
    ["another first message", { messages: [system, message("user", "ho")] }, 1, "messages"],
    ["a long pause", {}, 5 * 60_000 + 1, "expired"]
  ]
  for (const [what, change, now, lost] of changes) {
    it(`reports which part of the cache was lost by ${what}`, () => {
      const found = PromptCache.send(cache, promptOf({ ...first, ...change }), now)
      assert.strictEqual(found.lost, lost)
      assert.isBelow(found.tokens, found.possible)
    })
  }

  it("expects no cached tokens for a first or a short prompt, and all of them for the same prompt again", () => {
    const { cache: _, ...expected } = PromptCache.send(PromptCache.empty, promptOf(first), 0)
    assert.deepStrictEqual(expected, { tokens: 0, possible: 0, lost: undefined })
    assert.deepStrictEqual(PromptCache.send(PromptCache.empty, promptOf(request()), 0).cache, [])
    const longer = { ...first, messages: [...first.messages, message("assistant", "a")] }
    const again = PromptCache.send(cache, promptOf(longer), 1)
    assert.strictEqual(again.tokens, again.possible)
    assert.isUndefined(again.lost)
  })
})
