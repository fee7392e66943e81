// Lint of the viewer's JavaScript. What tsc sees better (undefined and unused names across the
// worker's joined files) is left to it; what would let a text become part of the page is forbidden.
import js from "@eslint/js";
import globals from "globals";

const PARSES_HTML = ["innerHTML", "outerHTML", "insertAdjacentHTML", "setHTMLUnsafe"];

export default [
  js.configs.recommended,
  {
    linterOptions: { reportUnusedDisableDirectives: "error" },
    languageOptions: { ecmaVersion: "latest", sourceType: "module", globals: globals.browser },
    rules: {
      "array-callback-return": "error",
      "consistent-return": "error",
      "default-case-last": "error",
      eqeqeq: "error",
      "no-constructor-return": "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-restricted-properties": [
        "error",
        ...PARSES_HTML.map((property) => ({ property, message: "Text enters the page as text." })),
        { object: "document", property: "write", message: "Text enters the page as text." },
      ],
      "no-self-compare": "error",
      "no-shadow": "error",
      "no-template-curly-in-string": "error",
      "no-throw-literal": "error",
      "no-unmodified-loop-condition": "error",
      "no-unreachable-loop": "error",
      "no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      "no-use-before-define": ["error", { functions: false, classes: false, variables: false }],
      "no-useless-concat": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
      "prefer-template": "error",
      radix: "error",
    },
  },
  {
    files: ["**/static/worker/*.js"],
    languageOptions: { sourceType: "script", globals: globals.worker },
    rules: { "no-undef": "off", "no-unused-vars": ["error", { vars: "local" }], "no-redeclare": "off" },
  },
];
