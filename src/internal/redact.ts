/**
 * Keeps keys out of what is told (S-7).
 *
 * Secrets are Redacted values and never become text on purpose. This catches
 * those that come back by accident, in the message of somebody else's error:
 * bearer tokens and the key shapes of well-known vendors, in linear time.
 *
 * @since 0.1.0
 */

const shapes: ReadonlyArray<RegExp> = [
  /\b(?:sk|pk|rk|xai|gsk|hf|ghp|gho|ghs|github_pat|glpat|xox[abprs])[-_][A-Za-z0-9_-]{8,}/g,
  /\bAIza[A-Za-z0-9_-]{20,}/g,
  /\bAKIA[A-Z0-9]{12,}/g,
  /\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*/g,
  /\b(?:[Bb]earer|[Bb]asic) [A-Za-z0-9._~+/=-]{8,}/g,
  /\b(?:api[-_ ]?key|token|password|secret)["']?\s{0,2}[:=]\s{0,2}["']?[^\s"',;&]{6,}/gi
]

/** The text with everything that looks like a key replaced. */
export const redact = (text: string): string => {
  let clean = text
  for (const shape of shapes) clean = clean.replace(shape, "<redacted>")
  return clean
}
