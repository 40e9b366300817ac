/**
 * A skill that knows a few words of French: what the scripted model of `--mcp` uses beside a server.
 */

import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Skill from "../../Skill.ts"

/** Translates word by word. */
export const translate = Skill.make("translate", {
  description: "Translate a short French text into English, word by word",
  input: Schema.Struct({ text: Schema.String.annotate({ description: "French" }) }),
  effects: "read",
  execute: ({ text }) => {
    const unknown = words(text).filter((word) => !english.has(word.toLowerCase()))
    return unknown.length > 0
      ? Effect.fail(new UnknownWords({ words: unknown }))
      : Effect.succeed(text.replace(word, (french) => likeIt(french, english.get(french.toLowerCase()) ?? french)))
  }
})

/** The dictionary is small. */
export class UnknownWords extends Schema.TaggedError<UnknownWords>()("UnknownWords", {
  words: Schema.Array(Schema.String)
}) {
  override get message() {
    return `not in the dictionary: ${this.words.slice(0, 20).join(", ")}`
  }
}

const word = /\p{L}+/gu

const words = (text: string): ReadonlyArray<string> => text.match(word) ?? []

/** A capital stays one. */
const likeIt = (french: string, translated: string): string =>
  /^\p{Lu}/u.test(french) ? `${translated.charAt(0).toUpperCase()}${translated.slice(1)}` : translated

const english: ReadonlyMap<string, string> = new Map([
  ["bonjour", "hello"],
  ["chère", "dear"],
  ["cher", "dear"],
  ["amie", "friend"],
  ["ami", "friend"],
  ["la", "the"],
  ["le", "the"],
  ["les", "the"],
  ["un", "a"],
  ["une", "a"],
  ["et", "and"],
  ["est", "is"],
  ["sont", "are"],
  ["dans", "in"],
  ["maison", "house"],
  ["jardin", "garden"],
  ["mer", "sea"],
  ["monde", "world"],
  ["chat", "cat"],
  ["dort", "sleeps"],
  ["calme", "calm"],
  ["petit", "little"],
  ["petite", "little"],
  ["à", "to"],
  ["tout", "all"],
  ["merci", "thanks"]
])
