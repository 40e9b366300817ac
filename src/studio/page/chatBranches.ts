/**
 * The branches of a conversation. A question that is asked again, or asked otherwise, is another variant of its place,
 * and what follows it belongs to that variant alone.
 */

/** The variants on the way through a conversation, by their places. Both count from 1. */
export type Choices = ReadonlyMap<number, number>

/** Reads the choices of an address, such as `3v2.5v1`. */
export const readChoices = (text: string): Choices =>
  new Map([...text.matchAll(/(\d+)v(\d+)/g)].map(([, place, variant]) => [Number(place), Number(variant)]))

export const writeChoices = (choices: Choices): string =>
  [...choices].map(([place, variant]) => `${place}v${variant}`).join(".")

/** Chooses a variant of a place. Choices at later places end there. */
export const choose = (choices: Choices, place: number, variant: number): Choices =>
  new Map([...[...choices].filter(([at]) => at < place), [place, variant]])

/** First variants are not needed to name a run. */
const turnsOff = (choices: Choices, place: number): Choices =>
  new Map([...choices].filter(([at, variant]) => at <= place && variant > 1))

/**
 * Returns the id of the run at a place. It includes the conversation, so that a list of runs is a list of
 * conversations.
 */
export const runIdOf = (conversation: string, choices: Choices, place: number): string =>
  ["chat", conversation, writeChoices(turnsOff(choices, place)), place].filter((part) => part !== "").join(".")

export const chatAddress = (agent: string, conversation: string): string =>
  `#/chat/${encodeURIComponent(agent)}/${encodeURIComponent(conversation)}`

/** Returns the address of a new conversation. */
export const newChat = (agent: string): string => chatAddress(agent, crypto.randomUUID().slice(0, 8))
