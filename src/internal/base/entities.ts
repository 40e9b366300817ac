/**
 * Text between tags: nothing in it can be taken for one.
 */

/** The text with the characters that mean something in markup written as entities. */
export const entities = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")
