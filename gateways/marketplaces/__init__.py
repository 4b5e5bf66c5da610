"""OpenSea, Magic Eden and Alchemy: profiles, collections, traits, lists."""
