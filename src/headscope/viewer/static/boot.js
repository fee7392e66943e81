import { start } from "headscope/main.js";

start(document.getElementById("headscope"));
//# sourceURL=headscope/boot.js
