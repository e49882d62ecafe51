/** The form to sign in with a token of the cluster. */

import { post } from "./api.js";
import { h, setText } from "./dom.js";

/**
 * The form.
 * @param {() => void} signedIn called after the server has accepted a token
 * @returns {HTMLElement}
 */
export function signInForm(signedIn) {
  const token = h("input", {
    id: "token", type: "password", name: "token", autocomplete: "off", required: true, spellcheck: "false",
    "aria-describedby": "token-help token-error",
  });
  const error = h("p", { id: "token-error", class: "form-error", role: "alert" });
  const button = h("button", { type: "submit", class: "button primary" }, "Sign in");
  const submit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    setText(error, "");
    try {
      await post("/api/sign-in", { token: token.value.trim() });
      token.value = "";
      signedIn();
    } catch (problem) {
      setText(error, problem.message);
      token.setAttribute("aria-invalid", "true");
      token.focus();
    } finally {
      button.disabled = false;
    }
  };
  token.addEventListener("input", () => token.removeAttribute("aria-invalid"));
  return h(
    "div",
    { class: "sign-in" },
    h(
      "form",
      { class: "card sign-in-card", on: { submit } },
      h("h1", null, "Sign in"),
      h("p", { class: "muted" }, "You see what the token may list in the cluster, and nothing else."),
      h("label", { for: "token" }, "Bearer token"),
      token,
      h("div", { id: "token-help", class: "hint" }, "Create a token of a ServiceAccount with", h("code", null, "kubectl create token NAME --namespace NAMESPACE"), "The dashboard keeps the token in memory until you sign out or it expires, and the browser gets a cookie that scripts cannot read."),
      error,
      button,
    ),
  );
}
