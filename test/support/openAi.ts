/** Replies in the format of OpenAI, read by its provider. */
import { readingOf } from "./provider.ts"

export const readingAs = (name: string, ...list: ReadonlyArray<object | string>) => readingOf(name, list)

export const reading = (...list: ReadonlyArray<object | string>) => readingAs("openai", ...list)
