/** What a model writes in the block language. */

export const final = (text: string): string => `<block type="final">${text}</block>`

/** A call of a skill or a builtin, with text as it is or a value as JSON. */
export const command = (name: string, input: unknown = {}): string =>
  `<block type="command" name="${name}">${typeof input === "string" ? input : JSON.stringify(input)}</block>`
