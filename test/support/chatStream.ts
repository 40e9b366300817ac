/** The wire of a Chat Completions stream. */

/** One event of a Chat Completions stream. */
export const chunk = (delta: object, more: object = {}): string =>
  `data: ${JSON.stringify({ id: "c1", model: "m", choices: [{ index: 0, delta, finish_reason: null }], ...more })}\n\n`

/** One event as an object: what is new, and why the reply ended. */
export const delta = (delta: object, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason }]
})

/** The last events of a Chat Completions stream. */
export const ending =
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}\n\n` + "data: [DONE]\n\n"
