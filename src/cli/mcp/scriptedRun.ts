/**
 * Demonstrates MCP servers with a script instead of a model. It reads a file through the block `mcp`, translates its
 * first line with a skill, and answers. The servers and the skill are real.
 */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Agent from "../../Agent.ts"
import * as Block from "../../Block.ts"
import * as Content from "../../Content.ts"
import * as Kernel from "../../Kernel.ts"
import type { Message } from "../../Message.ts"
import * as Skill from "../../Skill.ts"
import * as SkillRegistry from "../../SkillRegistry.ts"
import * as MockProvider from "../../testing/MockProvider.ts"
import { follow, type Options as FollowOptions } from "../followRun.ts"
import * as KernelLayer from "../kernelLayer.ts"
import type * as Store from "../storeFlag.ts"
import { excerpt } from "../terminalText.ts"
import * as Servers from "./servers.ts"

const question = "Read the file letter.txt and tell me its first line in English."

/** The answer with the servers of `examples/mcp.yml`. */
export const answer = 'The first line is "Bonjour, petit monde." In English: "Hello, little world."'

/** Runs the script with the servers of a config. */
export const scriptedRun = Effect.fnUntraced(function* (
  file: string,
  options: Pick<FollowOptions, "form" | "color" | "store"> & {
    readonly maxSteps: number | undefined
    readonly opened: Store.Store
  }
) {
  const agent = Agent.make({
    instructions: "You read files through the server 'files' and translate with the skill 'translate'.",
    model: "scripted",
    skills: "all",
    maxSteps: options.maxSteps ?? 10
  })
  const kernel = KernelLayer.make({
    provider: MockProvider.named("scripted").onCall(({ messages }) => replyTo(messages)),
    registries: yield* Servers.registries(file, new Map(), Layer.orDie(SkillRegistry.layer(translate))),
    store: options.opened,
    references: Layer.empty
  })
  return yield* follow(Kernel.stream(agent, question), {
    ...options,
    title: `scripted model: no key is needed; the servers of ${file} and the skill are real`,
    question,
    check: ({ text }) =>
      text === answer
        ? undefined
        : `the script only knows examples/mcp.yml; use --model with other servers. It answered: ${excerpt(text, 200)}`
  }).pipe(Effect.provide(kernel))
})

const replyTo = (messages: ReadonlyArray<Message>): string => {
  const texts = messages.flatMap(({ content, role }) =>
    role === "user" && content[0] !== undefined ? [Content.toText(content[0])] : []
  )
  const problem = texts.findLast((text) => text.startsWith('<block type="error"'))
  if (problem !== undefined) return final(`It did not work: ${contentOf(problem)}`)
  const file = resultOf(texts, "mcp")
  if (file === undefined) return `I read the file through its server.\n${readFile}`
  const line = file.split("\n", 1)[0]?.trim() ?? ""
  const translation = resultOf(texts, "translate")
  return translation === undefined
    ? Block.render({ type: "command", name: "translate", content: JSON.stringify({ text: line }) })
    : final(`The first line is "${line}" In English: "${translation}"`)
}

const readFile = Block.render({
  type: "mcp",
  name: null,
  content: JSON.stringify({
    method: "tools/call",
    params: { server: "files", name: "read_text_file", arguments: { path: "letter.txt" } }
  })
})

const final = (text: string): string => Block.render({ type: "final", name: null, content: text })

const resultOf = (texts: ReadonlyArray<string>, name: string): string | undefined => {
  const found = texts.find((text) => text.startsWith(`<block type="result" name="${name}">`))
  return found === undefined ? undefined : contentOf(found)
}

const contentOf = (block: string): string =>
  Block.unescape(block.replace(/^<block [^>]*>/, "").replace(/<\/block>$/, ""))

const translate = Skill.make("translate", {
  description: "Translate a short French text into English, word by word",
  input: Schema.Struct({ text: Schema.String.annotate({ description: "French" }) }),
  effects: "read",
  execute: ({ text }) => Effect.succeed(text.replace(/\p{L}+/gu, (word) => english.get(word) ?? word))
})

const english: ReadonlyMap<string, string> = new Map([
  ["Bonjour", "Hello"],
  ["petit", "little"],
  ["monde", "world"]
])
